/* weft.h: the parts of the ABI (abi/abi.cddl) that a step in C needs: one header, no library.
 *
 * Messages are CBOR. weft_write makes one from text like JSON in single quotes, weft_get finds a value in one:
 *     weft_write("[0, ['GreetingEvent', {'text': %s, 'nth': %d}]]", "Hello", 3)        weft_get(input, "1.1.name")
 * %s is a string, %d an int, %l an int64_t, %f a double, %v a weft_value. No memory is freed: each invocation starts from the
 * same memory. Messages larger than WEFT_ARENA bytes, and invalid messages, cause a trap, which fails only the step. */
#pragma once
#include <stdarg.h>
#include <stdint.h>
#ifndef WEFT_ARENA
#define WEFT_ARENA (1 << 20) /* bytes for all messages of an invocation */
#endif
#define WEFT_EXPORT(name) __attribute__((export_name(#name))) /* of weft_describe and weft_step */
#define WEFT_IMPORT(name) __attribute__((import_module("weft:v1"), import_name(#name)))
typedef struct { const uint8_t *at; uint32_t size; } weft_value; /* one CBOR item; size 0: missing */

static uint8_t weft_arena[WEFT_ARENA];
static uint32_t weft_used, weft_status; /* status of the last host call; if not 0, the answer is an error: {code, message} */

static uint8_t *weft_take(uint64_t size) {
	if (size > WEFT_ARENA - weft_used) __builtin_trap();
	weft_used += (uint32_t)size;
	return weft_arena + weft_used - size;
}

static void weft_put(uint8_t *to, uint8_t first, uint64_t number, int bytes) { /* the number is big-endian */
	for (*to = first; bytes > 0; number >>= 8) to[bytes--] = (uint8_t)number;
}
static void weft_head(uint8_t major, uint64_t number) {
	int bytes = number < 24 ? 0 : 8;
	weft_put(weft_take(1 + bytes), (uint8_t)(major << 5 | (bytes ? 27 : number)), number, bytes);
}
static void weft_put_int(int64_t n) { weft_head(n < 0, (uint64_t)(n < 0 ? ~n : n)); }
static void weft_put_text(const char *text, char end) {
	uint32_t size = 0;
	while (text[size] != end) if (!text[size++]) __builtin_trap();
	weft_head(3, size);
	__builtin_memcpy(weft_take(size), text, size);
}
static void weft_put_value(weft_value v) { v.size ? (void)__builtin_memcpy(weft_take(v.size), v.at, v.size) : weft_head(7, 22); }
static char weft_look(const char **format) { /* skips spaces, commas and colons, and returns the next character */
	while (**format == ' ' || **format == '\n' || **format == '\t' || **format == ',' || **format == ':') ++*format;
	return **format;
}
static void weft_item(const char **format, va_list *args) {
	char c = weft_look(format);
	const char *rest = ++*format;
	if (c == '[' || c == '{') { /* the closing character is c + 2 */
		uint8_t *head = weft_take(5);
		uint32_t items = 0;
		for (; weft_look(format) != c + 2; items++) weft_item(format, args);
		weft_put(head, c == '[' ? 0x9a : 0xba, c == '[' ? items : items / 2, 4);
		++*format;
	} else if (c == '\'') {
		weft_put_text(rest, '\'');
		while (*(*format)++ != '\'');
	} else if (c == 't' || c == 'f' || c == 'n') { /* true, false, null */
		weft_head(7, c == 't' ? 21 : c == 'f' ? 20 : 22);
		while (**format >= 'a' && **format <= 'z') ++*format;
	} else if (c == '-' || (c >= '0' && c <= '9')) {
		int64_t n = c == '-' ? 0 : c - '0';
		for (; **format >= '0' && **format <= '9'; ++*format) n = n * 10 + (**format - '0');
		weft_put_int(c == '-' ? -n : n);
	} else if (c == '%' && ++*format) {
		if (*rest == 's') weft_put_text(va_arg(*args, const char *), 0);
		else if (*rest == 'd') weft_put_int(va_arg(*args, int));
		else if (*rest == 'l') weft_put_int(va_arg(*args, int64_t));
		else if (*rest == 'f') weft_put(weft_take(9), 0xfb, ((union { double f; uint64_t n; }){.f = va_arg(*args, double)}).n, 8);
		else if (*rest == 'v') weft_put_value(va_arg(*args, weft_value));
		else __builtin_trap();
	} else __builtin_trap();
}
static weft_value weft_write(const char *format, ...) {
	const uint8_t *from = weft_arena + weft_used;
	va_list args;
	va_start(args, format);
	weft_item(&format, &args);
	va_end(args);
	return (weft_value){from, (uint32_t)(weft_arena + weft_used - from)};
}
static uint64_t weft_open(weft_value *v, unsigned *major) { /* removes the head */
	unsigned low = v->size ? *v->at & 31 : 31, bytes = low < 24 ? 0 : 1u << (low - 24);
	if (low > 27 || bytes >= v->size) __builtin_trap();
	uint64_t number = bytes ? 0 : low;
	for (unsigned i = 1; i <= bytes; i++) number = number << 8 | v->at[i];
	*major = *v->at >> 5;
	v->at += 1 + bytes, v->size -= 1 + bytes;
	return number;
}
static weft_value weft_next(weft_value *v) { /* removes the whole first item */
	const uint8_t *from = v->at;
	unsigned major;
	uint64_t number = weft_open(v, &major);
	if (major == 2 || major == 3) v->at += number > v->size ? (__builtin_trap(), 0) : number, v->size -= (uint32_t)number;
	if (major == 4 || major == 5) for (number <<= major == 5; number > 0; number--) weft_next(v);
	return (weft_value){from, (uint32_t)(v->at - from)};
}
static const char *weft_text(weft_value v) { /* a copy that ends in a 0 byte; "" if it is not a text */
	unsigned major = 0;
	uint64_t size = v.size ? weft_open(&v, &major) : 0;
	char *text = (char *)weft_take((size = major == 3 ? size : 0) + 1);
	__builtin_memcpy(text, v.at, (uint32_t)size);
	return text[size] = 0, text;
}
static int64_t weft_int(weft_value v, int64_t otherwise) { /* otherwise: the result if it is not an integer */
	unsigned major = 7;
	uint64_t n = v.size ? weft_open(&v, &major) : 0;
	return major > 1 || n >> 63 ? otherwise : major ? ~(int64_t)n : (int64_t)n;
}
static int weft_is(weft_value v, const char *text, char end) { /* whether it equals the text up to the character end */
	unsigned major = 0;
	uint64_t i = 0, size = v.size ? weft_open(&v, &major) : 0;
	while (i < size && text[i] && text[i] == (char)v.at[i]) i++;
	return major == 3 && i == size && (!text[i] || text[i] == end);
}
static weft_value weft_get(weft_value v, const char *path) { /* path: field names and list indices, separated by dots */
	for (const char *rest = path; *path; path = *rest ? ++rest : rest) {
		unsigned major = 0, index = 0, found = 0;
		uint64_t items = v.size ? weft_open(&v, &major) : 0;
		for (rest = path; *rest && *rest != '.'; rest++) index = index * 10 + (unsigned)(*rest - '0');
		for (uint64_t i = 0; i < items && major >> 1 == 2 && !found; i++) {
			found = major == 5 ? weft_is(weft_next(&v), path, '.') : i == index;
			weft_value item = weft_next(&v);
			if (found) v = item;
		}
		if (!found) return (weft_value){0, 0};
	}
	return v;
}
WEFT_IMPORT(input) void weft_input(void *to, uint32_t offset, uint32_t size);
WEFT_IMPORT(response) void weft_response(void *to, uint32_t offset, uint32_t size);
WEFT_IMPORT(output) void weft_output(const void *from, uint32_t size);
#define WEFT_CALL(name) \
	WEFT_IMPORT(name) uint64_t weft_host_##name(const void *request, uint32_t size); \
	static inline weft_value weft_##name(weft_value request) { return weft_answer(weft_host_##name(request.at, request.size)); }
static weft_value weft_answer(uint64_t result) {
	uint8_t *to = weft_take((uint32_t)result);
	weft_status = (uint32_t)(result >> 32);
	return weft_response(to, 0, (uint32_t)result), (weft_value){to, (uint32_t)result};
}
WEFT_CALL(state_get) WEFT_CALL(state_edit) WEFT_CALL(state_begin) WEFT_CALL(state_commit) WEFT_CALL(state_abort)
WEFT_CALL(send_event) WEFT_CALL(collect_events) WEFT_CALL(wait_for_event) WEFT_CALL(write_event_to_stream)
WEFT_CALL(run_workflow) WEFT_CALL(call_resource) WEFT_CALL(sleep) WEFT_CALL(now) WEFT_CALL(random) WEFT_CALL(log)
static inline weft_value weft_read(uint32_t size) { /* the input of weft_step */
	uint8_t *to = weft_take(size);
	return weft_input(to, 0, size), (weft_value){to, size};
}
static inline uint32_t weft_return(weft_value output) { /* for weft_step to return: [0, events] or [1, error] */
	return weft_output(output.at, output.size), weft_int(weft_get(output, "0"), 1) != 0;
}
