/* engine.c: QuickJS-ng as a step module. The author's bundle lies in memory, where the builder has put it. weft_describe evaluates
 * the bundle; the image of memory after that is what every invocation starts from, so weft_step finds everything ready to run. */
#include "engine.h"
#include "stack.h"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT(name) __attribute__((export_name(#name)))
#define IMPORT(name) __attribute__((import_module("weft:v1"), import_name(#name)))
IMPORT(input) extern void host_input(void *to, uint32_t offset, uint32_t size);
IMPORT(response) extern void host_response(void *to, uint32_t offset, uint32_t size);
IMPORT(output) extern void host_output(const void *from, uint32_t size);

#define CALLS(X) X(state_get) X(state_edit) X(state_begin) X(state_commit) X(state_abort) X(send_event) X(collect_events) \
	X(wait_for_event) X(write_event_to_stream) X(run_workflow) X(call_resource) X(sleep) X(now) X(random) X(log)
#define DECLARE(n) IMPORT(n) extern uint64_t host_##n(const void *, uint32_t);
#define ENTRY(n) {#n, host_##n},
CALLS(DECLARE)
static const struct { const char *name; uint64_t (*call)(const void *, uint32_t); } calls[] = {CALLS(ENTRY)};
#define LOG (COUNT(calls) - 1) /* the only call that works outside a step */

#define HEADROOM (512 << 10)     /* memory that usual steps need beyond the image */
#define GC_THRESHOLD (64 << 20)  /* an invocation ends before collecting pays */

bundle user_bundle = {1, 1, 1, 1};
bool in_step;

/* memory_init lets the runtime fill what it frees with zeros while describing: the host keeps no page of zeros of the image. */
static void *memory_clear(void *opaque, size_t count, size_t size) { return calloc(count, size); }
static void *memory_new(void *opaque, size_t size) { return malloc(size); }
static size_t memory_size(const void *p) { return malloc_usable_size((void *)p); }

static void memory_free(void *opaque, void *p) {
	if (p && !in_step) memset(p, 0, malloc_usable_size(p));
	free(p);
}

static void *memory_resize(void *opaque, void *p, size_t size) {
	size_t old = p && !in_step ? malloc_usable_size(p) : 0;
	if (!old) return realloc(p, size);
	void *to = malloc(size);
	if (!to) return NULL;
	memcpy(to, p, old < size ? old : size);
	memory_free(NULL, p);
	return to;
}

static const JSMallocFunctions memory = {memory_clear, memory_new, memory_free, memory_resize, memory_size};

/* keep_source is how QuickJS keeps the text of a function: that of the bundle stays where it is. See build.sh. */
char *keep_source(JSContext *c, const char *text, size_t size) {
	const char *from = (const char *)user_bundle.source;
	return text >= from && text + size <= from + user_bundle.source_size ? (char *)text : js_strndup(c, text, size);
}

void drop_source(JSRuntime *r, char *text) {
	const char *from = (const char *)user_bundle.source;
	if (text < from || text > from + user_bundle.source_size) js_free_rt(r, text);
}

JSRuntime *rt;
JSContext *ctx;


static writer given; /* the step's input */
static JSValue native, run_step, give_result, protos = JS_UNDEFINED, weft_error = JS_UNDEFINED;

uint64_t host_random_call(const void *request, uint32_t size) { return host_random(request, size); }
void host_response_copy(void *to, uint32_t offset, uint32_t size) { host_response(to, offset, size); }

void die(const char *text, size_t size) {
	while (size > 0) {
		ssize_t n = write(2, text, size);
		if (n <= 0) break;
		text += n, size -= (size_t)n;
	}
	__builtin_trap();
}

/* ---- host calls ---- */

/* new_error returns an error of the class that the SDK has registered. */
static JSValue new_error(JSValue message, JSValue more) {
	if (JS_IsUndefined(weft_error)) {
		JSValue e = JS_NewError(ctx), code = JS_GetPropertyStr(ctx, more, "code");
		JS_DefinePropertyValueStr(ctx, e, "message", message, JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
		JS_DefinePropertyValueStr(ctx, e, "code", code, JS_PROP_C_W_E);
		JS_FreeValue(ctx, more);
		return e;
	}
	JSValue args[] = {message, more}, e = JS_CallConstructor(ctx, weft_error, 2, (JSValueConst *)args);
	JS_FreeValue(ctx, message);
	JS_FreeValue(ctx, more);
	return e;
}

static JSValue throw_error(JSValue message, JSValue more) {
	JSValue e = new_error(message, more);
	return JS_IsException(e) ? e : JS_Throw(ctx, e);
}

static void put_value(writer *w, JSValueConst v);
static JSValue own_text(JSValueConst object, const char *name);

/* prefixed is the message of a host call's error: after what was done to which object, before what to do if the object does not exist. */
static JSValue prefixed(JSContext *c, JSValue message, JSValueConst more, int argc, JSValueConst *argv) {
	if (argc < 2 || !JS_IsString(argv[1])) return message;
	writer w = {0};
	put_value(&w, argv[1]);
	if (argc > 2 && JS_IsString(argv[2])) {
		put_format(&w, " \"");
		put_value(&w, argv[2]);
		put_format(&w, "\"");
	}
	put_format(&w, ": ");
	put_value(&w, message);
	JS_FreeValue(c, message);
	JSValue code = argc > 3 ? own_text(more, "code") : JS_UNDEFINED;
	const char *name = JS_IsString(code) ? JS_ToCString(c, code) : NULL;
	if (name && !strcmp(name, "not_found")) {
		put_format(&w, "; ");
		put_value(&w, argv[3]);
	}
	JS_FreeCString(c, name);
	JS_FreeValue(c, code);
	message = text_value(&w);
	free(w.at);
	return message;
}

static JSValue throw_code(const char *code, JSValue message) {
	JSValue more = JS_NewObject(ctx);
	JS_DefinePropertyValueStr(ctx, more, "code", JS_NewString(ctx, code), JS_PROP_C_W_E);
	return throw_error(message, more);
}

/* read_response decodes the answer to the last host call. */
static JSValue read_response(uint32_t size) {
	if (size == 0) return JS_NULL;
	writer w = begin_writing();
	host_response(grow(&w, size), 0, size);
	JSValue v = cbor_take(w.at, w.size);
	done_writing(&w);
	return v;
}

static JSValue js_call(JSContext *c, JSValueConst self, int argc, JSValueConst *argv, int which) {
	if (!in_step && which != LOG) {
		writer w = begin_writing();
		put_format(&w, "%s works only in a step", calls[which].name);
		JSValue text = text_value(&w);
		done_writing(&w);
		return throw_code("failed_precondition", prefixed(c, text, JS_UNDEFINED, argc, argv));
	}
	writer w = begin_writing();
	if (!cbor_put(&w, argv[0])) {
		done_writing(&w);
		return JS_EXCEPTION;
	}
	uint64_t r = calls[which].call(w.at, (uint32_t)w.size);
	done_writing(&w);
	JSValue v = read_response((uint32_t)r);
	if (r >> 32 == 0 || JS_IsException(v)) return v;
	JSValue message = JS_IsObject(v) ? JS_GetPropertyStr(c, v, "message") : JS_NewString(c, "the host call failed");
	return throw_error(prefixed(c, message, v, argc, argv), v);
}

/* js_settle calls a function with the other arguments and gives a promise of its result or of what it throws, as an async function does. */
static JSValue js_settle(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
	JSValue v = JS_Call(c, argv[0], JS_UNDEFINED, argc - 1, argv + 1);
	bool failed = JS_IsException(v);
	if (failed) v = JS_GetException(c);
	JSValue promise = settled_promise(c, failed, v);
	JS_FreeValue(c, v);
	return promise;
}

static JSValue js_encode(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
	writer w = begin_writing();
	JSValue v = cbor_put(&w, argv[0]) ? JS_NewUint8ArrayCopy(c, w.at, w.size) : JS_EXCEPTION;
	done_writing(&w);
	return v;
}

static JSValue js_decode(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
	size_t n = 0;
	const uint8_t *p = JS_GetUint8Array(c, &n, argv[0]);
	if (!p && JS_HasException(c)) return JS_EXCEPTION;
	writer copy = begin_writing(); /* the bytes stay as they are, whatever runs meanwhile */
	if (n) memcpy(grow(&copy, n), p, n);
	JSValue v = cbor_take(copy.at, n);
	done_writing(&copy);
	return v;
}

/* js_input gives the step's input, made anew at each call. */
static JSValue js_input(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) { return cbor_take(given.at, given.size); }

static JSValue js_float(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
	double d;
	return JS_ToFloat64(c, &d, argv[0]) ? JS_EXCEPTION : cbor_float(d);
}

static JSValue js_in_step(JSContext *c, JSValueConst self) { return JS_NewBool(c, in_step); }

/* ---- errors ---- */

/* take_exception returns the pending exception. */
static JSValue take_exception(void) { return JS_GetException(ctx); }
static void drop_exception(void) { JS_FreeValue(ctx, JS_GetException(ctx)); }

/* own_text returns a property as text, or undefined if the property is not a text. Exceptions of getters are dropped. */
static JSValue own_text(JSValueConst object, const char *name) {
	JSValue v = JS_GetPropertyStr(ctx, object, name);
	if (JS_IsException(v)) drop_exception();
	if (JS_IsString(v)) return v;
	JS_FreeValue(ctx, v);
	return JS_UNDEFINED;
}

static void put_value(writer *w, JSValueConst v) {
	size_t n;
	const char *s = JS_ToCStringLen(ctx, &n, v);
	if (!s) {
		drop_exception();
		put_format(w, "(a value without text)");
		return;
	}
	memcpy(grow(w, n), s, n);
	JS_FreeCString(ctx, s);
}

/* own_error reports whether an error's name is that of the language's own errors. */
static bool own_error(const char *name) {
	static const char *const names[] = {"TypeError", "RangeError", "ReferenceError", "SyntaxError", "EvalError", "URIError", "InternalError", "AggregateError"};
	for (size_t i = 0; i < COUNT(names); i++) if (!strcmp(names[i], name)) return true;
	return false;
}

static void set(JSValueConst object, const char *name, JSValue v) { JS_DefinePropertyValueStr(ctx, object, name, v, JS_PROP_C_W_E); }
static JSValue plain(void) { return JS_NewObjectProto(ctx, JS_NULL); } /* nothing that a script puts into a prototype shows in it */

/* cause_text returns an error's cause as text, or undefined. */
static JSValue cause_text(JSValueConst e) {
	JSValue cause = JS_GetPropertyStr(ctx, e, "cause"), text = JS_UNDEFINED;
	if (JS_IsException(cause)) drop_exception();
	else if (!JS_IsUndefined(cause)) {
		writer w = {0};
		put_value(&w, cause);
		text = text_value(&w);
		free(w.at);
	}
	JS_FreeValue(ctx, cause);
	return text;
}

/* What programs for other platforms look for, and what a step uses instead. typeof gives "undefined" for all of them, so that
 * packages which can do without do. */
#define HTTP "a step calls others by ctx.http(name), with a resource of the kind \"http\""
#define PARALLEL "return a list of events: the steps that take them run side by side"
#define NO_PAGE "a step runs on a server and has no page"
#define NO_FILES "a step has no files: import a .json, .txt, .md or .sql file, or use ctx.kv(name)"
#define KEEP "keep data in the state or use ctx.kv(name)"
static const char *const instead[][2] = {
	{"fetch", HTTP}, {"XMLHttpRequest", HTTP}, {"WebSocket", HTTP}, {"EventSource", HTTP}, {"Headers", HTTP}, {"Request", HTTP}, {"Response", HTTP},
	{"FormData", HTTP}, {"Blob", "use Uint8Array"}, {"File", NO_FILES}, {"Buffer", "use Uint8Array, which has toBase64, toHex and fromBase64, or TextEncoder"},
	{"process", "settings of a step are in ctx.config(), and there are no environment variables"}, {"require", "use import"}, {"module", "use export"},
	{"exports", "use export"}, {"__dirname", NO_FILES}, {"__filename", NO_FILES}, {"global", "use globalThis"}, {"self", "use globalThis"},
	{"window", NO_PAGE}, {"document", NO_PAGE}, {"navigator", NO_PAGE}, {"localStorage", KEEP}, {"sessionStorage", KEEP}, {"indexedDB", KEEP},
	{"Deno", "use what JavaScript itself has"}, {"Bun", "use what JavaScript itself has"}, {"setImmediate", "use setTimeout or queueMicrotask"},
	{"WebAssembly", "write the step in Go or Rust, or import JavaScript"}, {"Worker", PARALLEL}, {"SharedArrayBuffer", PARALLEL}, {"Atomics", PARALLEL},
	{"Intl", "toLocaleString is plain, and a package from npm formats for people"}, {"Temporal", "use Date, or a package from npm"},
};

/* put_instead adds what to use instead of a global that a ReferenceError names. */
static void put_instead(writer *w, const char *message) {
	const char *end = message ? strstr(message, " is not defined") : NULL;
	for (size_t i = 0; end && i < COUNT(instead); i++)
		if (strlen(instead[i][0]) == (size_t)(end - message) && !memcmp(instead[i][0], message, (size_t)(end - message))) put_format(w, ": %s", instead[i][1]);
}

/* describe_script_error fills in what is known of an Error that is not the SDK's. */
static void describe_script_error(JSValueConst out, JSValueConst e) {
	JSValue name = own_text(e, "name"), message = own_text(e, "message"), frames = stack_frames(e), data = plain(), cause = cause_text(e);
	const char *text = JS_IsString(name) ? JS_ToCString(ctx, name) : NULL;
	writer w = {0};
	put_format(&w, "%s", text ? text : "Error");
	if (JS_IsString(message)) {
		put_format(&w, ": ");
		put_value(&w, message);
		const char *said = text && !strcmp(text, "ReferenceError") ? JS_ToCString(ctx, message) : NULL;
		put_instead(&w, said);
		JS_FreeCString(ctx, said);
	}
	JSValue first = JS_GetPropertyUint32(ctx, frames, 0);
	if (JS_IsString(first)) { /* "name (place)" or "place" */
		size_t n;
		const char *frame = JS_ToCStringLen(ctx, &n, first), *open = frame && n && frame[n - 1] == ')' ? strrchr(frame, '(') : NULL;
		if (open) put_format(&w, " %s", open);
		else if (frame) put_format(&w, " (%s)", frame);
		JS_FreeCString(ctx, frame);
	}
	set(out, "code", JS_NewString(ctx, text && own_error(text) ? "panic" : "error"));
	set(out, "message", text_value(&w));
	set(data, "name", JS_NewString(ctx, text ? text : "Error"));
	set(data, "stack", frames);
	if (JS_IsString(cause)) set(data, "cause", cause);
	set(out, "data", data);
	free(w.at);
	JS_FreeCString(ctx, text);
	JS_FreeValue(ctx, name);
	JS_FreeValue(ctx, message);
	JS_FreeValue(ctx, first);
}

/* describe_error returns what leaves the step for a thrown value: {code, message, retryable?, data?}. */
static JSValue describe_error(JSValueConst e) {
	JSValue out = plain();
	int ours = JS_IsObject(e) && JS_IsFunction(ctx, weft_error) ? JS_IsInstanceOf(ctx, e, weft_error) : 0;
	if (ours < 0) drop_exception();
	JSValue code = ours > 0 ? own_text(e, "code") : JS_UNDEFINED;
	if (JS_IsString(code)) {
		JSValue message = own_text(e, "message"), retryable = JS_GetPropertyStr(ctx, e, "retryable"), data = JS_GetPropertyStr(ctx, e, "data");
		if (JS_IsException(retryable) || JS_IsException(data)) drop_exception();
		set(out, "code", code);
		set(out, "message", JS_IsString(message) ? message : JS_NewString(ctx, ""));
		if (JS_IsBool(retryable)) set(out, "retryable", retryable);
		if (JS_IsException(data) || JS_IsUndefined(data)) return out;
		set(out, "data", data);
		return out;
	}
	if (JS_IsObject(e) && JS_IsError(e)) {
		describe_script_error(out, e);
		return out;
	}
	writer w = {0};
	put_value(&w, e);
	set(out, "code", JS_NewString(ctx, "error"));
	set(out, "message", text_value(&w));
	free(w.at);
	return out;
}

static JSValue js_describe_error(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) { return describe_error(argv[0]); }
static JSValue js_frames(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) { return stack_frames(argv[0]); }

/* die_of prints a thrown value with its frames: the text becomes part of the answer to the upload. */
static void __attribute__((noreturn)) die_of(JSValue e) {
	JSValue d = describe_error(e), message = own_text(d, "message"), frames = stack_frames(e);
	writer w = {0};
	put_value(&w, message);
	int64_t n = 0;
	JS_GetLength(ctx, frames, &n);
	for (uint32_t i = 0; i < n; i++) {
		put_format(&w, "\n    at ");
		JSValue frame = JS_GetPropertyUint32(ctx, frames, i);
		put_value(&w, frame);
		JS_FreeValue(ctx, frame);
	}
	put_format(&w, "\n");
	die((char *)w.at, w.size);
}

/* ---- promises ---- */

/* Rejections that nobody handles, in the order in which they happened. */
static struct rejection { void *promise; JSValue reason; } *rejections;
static uint32_t rejection_count, rejection_room;

static void track_rejection(JSContext *c, JSValueConst promise, JSValueConst reason, bool handled, void *opaque) {
	void *p = JS_VALUE_GET_PTR(promise);
	if (!handled) {
		if (rejection_count == rejection_room) {
			rejection_room = rejection_room * 2 + 8;
			rejections = realloc(rejections, rejection_room * sizeof *rejections);
			if (!rejections) die("out of memory", 13);
		}
		rejections[rejection_count++] = (struct rejection){p, JS_DupValue(c, reason)};
		return;
	}
	for (uint32_t i = rejection_count; i-- > 0;) {
		if (rejections[i].promise != p) continue;
		JS_FreeValue(c, rejections[i].reason);
		memmove(&rejections[i], &rejections[i + 1], (--rejection_count - i) * sizeof *rejections);
		return;
	}
}

/* run_jobs runs jobs and timers until none is left. It returns false with an exception if one throws. */
static bool run_jobs(void) {
	for (;;) {
		JSContext *c;
		int n;
		while ((n = JS_ExecutePendingJob(rt, &c)) > 0) {}
		if (n < 0) return false;
		if (!timers_left()) return true;
		JSValue v = timers_run_next();
		if (JS_IsException(v)) return false;
		JS_FreeValue(ctx, v);
	}
}

/* unhandled throws the first rejection that nobody handles, except that of the given promise. */
static bool unhandled(JSValueConst except) {
	void *own = JS_IsObject(except) ? JS_VALUE_GET_PTR(except) : NULL;
	for (uint32_t i = 0; i < rejection_count; i++) {
		if (rejections[i].promise == own) continue;
		JS_Throw(ctx, JS_DupValue(ctx, rejections[i].reason));
		return true;
	}
	return false;
}

/* settle drives a step to its end and returns what its promise gives, or an exception. */
static JSValue settle(JSValue v, JSValueConst input) {
	if (JS_IsException(v) || !run_jobs()) return JS_EXCEPTION;
	if (!JS_IsPromise(v)) return unhandled(JS_UNDEFINED) ? JS_EXCEPTION : v;
	JSPromiseStateEnum state = JS_PromiseState(ctx, v);
	if (state == JS_PROMISE_REJECTED) return JS_Throw(ctx, JS_PromiseResult(ctx, v));
	if (unhandled(v)) return JS_EXCEPTION;
	if (state == JS_PROMISE_FULFILLED) return JS_PromiseResult(ctx, v);
	JSValue step = JS_GetPropertyUint32(ctx, input, 0);
	writer w = {0};
	put_format(&w, "step ");
	put_value(&w, step);
	put_format(&w, " waits for a promise that nothing settles");
	throw_code("failed_precondition", text_value(&w));
	free(w.at);
	JS_FreeValue(ctx, step);
	return JS_EXCEPTION;
}

/* ---- exports ---- */

static void natives_init(void) {
	static const JSCFunctionListEntry natives[] = {
		JS_PROP_INT32_DEF("version", 2, 0),
		JS_CGETSET_DEF("inStep", js_in_step, NULL),
		JS_CFUNC_DEF("input", 0, js_input),
		JS_CFUNC_DEF("encode", 1, js_encode),
		JS_CFUNC_DEF("decode", 1, js_decode),
		JS_CFUNC_DEF("float", 1, js_float),
		JS_CFUNC_DEF("frames", 1, js_frames),
		JS_CFUNC_DEF("describeError", 1, js_describe_error),
	};
	native = JS_NewObject(ctx);
	JS_SetPropertyFunctionList(ctx, native, natives, COUNT(natives));
	JS_SetPropertyStr(ctx, native, "settle", JS_NewCFunction(ctx, js_settle, "settle", 1)); /* those above are made at first use */
	JS_SetPropertyStr(ctx, native, "protos", JS_NewObjectProto(ctx, JS_NULL));
	for (size_t i = 0; i < COUNT(calls); i++)
		JS_SetPropertyStr(ctx, native, calls[i].name, JS_NewCFunctionMagic(ctx, js_call, calls[i].name, 1, JS_CFUNC_generic_magic, (int)i));
}

static void fail_if(bool failed) {
	if (failed) die_of(take_exception());
}

static void evaluate(JSValueConst global) {
	const char *source = (const char *)user_bundle.source;
	if (user_bundle.source <= 1 || source[user_bundle.source_size] != 0) die("this is the engine without a bundle: build a plugin with weft build", 66);
	JS_SetPropertyStr(ctx, global, "__weft", JS_DupValue(ctx, native));
	JSValue v = JS_Eval(ctx, source, user_bundle.source_size, BUNDLE_NAME, JS_EVAL_TYPE_GLOBAL);
	fail_if(JS_IsException(v) || !run_jobs() || unhandled(JS_UNDEFINED));
	JS_FreeValue(ctx, v);
	JSAtom name = JS_NewAtom(ctx, "__weft");
	JS_DeleteProperty(ctx, global, name, 0);
	JS_FreeAtom(ctx, name);
}

/* hook calls a function that the SDK has registered, and runs the jobs that the function starts. */
static JSValue hook(const char *name, bool required) {
	JSValue f = JS_GetPropertyStr(ctx, native, name);
	if (!required && JS_IsUndefined(f)) return f;
	if (!JS_IsFunction(ctx, f)) die("the bundle registers no workflow: its main file must export one by default\n", 75);
	JSValue v = JS_Call(ctx, f, JS_UNDEFINED, 0, NULL);
	fail_if(JS_IsException(v) || !run_jobs() || unhandled(JS_UNDEFINED));
	JS_FreeValue(ctx, f);
	return v;
}

extern char __stack_low; /* of the linker: where the stack ends, which grows down */

/* clear_stack fills what describing has used of the stack with zeros. It must not use much itself. */
static __attribute__((noinline)) void clear_stack(void) {
	char here;
	memset(&__stack_low, 0, (size_t)(&here - &__stack_low) - 4096);
}

EXPORT(weft_describe) void weft_describe(void) {
	rt = JS_NewRuntime2(&memory, NULL);
	ctx = rt ? JS_NewContext(rt) : NULL;
	if (!ctx) die("out of memory", 13);
	JS_SetMaxStackSize(rt, STACK_LIMIT);
	JS_SetHostPromiseRejectionTracker(rt, track_rejection, NULL);
	cbor_init();
	natives_init();
	JSValue global = JS_GetGlobalObject(ctx);
	globals_init(native, global);
	evaluate(global);
	JS_FreeValue(ctx, global);
	JSValue manifest = hook("describe", true);
	writer w = begin_writing();
	fail_if(!cbor_put(&w, manifest));
	host_output(w.at, (uint32_t)w.size);
	done_writing(&w);
	JS_FreeValue(ctx, manifest);
	weft_error = JS_GetPropertyStr(ctx, native, "WeftError");
	run_step = JS_GetPropertyStr(ctx, native, "step");
	give_result = JS_GetPropertyStr(ctx, native, "give");
	protos = JS_GetPropertyStr(ctx, native, "protos");
	JS_FreeValue(ctx, hook("warm", false));
	JS_SetPropertyStr(ctx, native, "describe", JS_UNDEFINED); /* what only describing needs leaves the image */
	JS_SetPropertyStr(ctx, native, "warm", JS_UNDEFINED);
	globals_seal();
	JS_RunGC(rt);
	JS_SetGCThreshold(rt, GC_THRESHOLD);
	if (!begin_arenas(rt)) die("out of memory", 13);
	free(malloc(HEADROOM));
	clear_stack();
}

/* put_error writes [1, error] for a thrown value. What cannot be encoded of a thrown value is an error of its own. */
static void put_error(writer *w) {
	for (int tries = 0; tries < 2; tries++) {
		JSValue e = take_exception(), d = describe_error(e);
		w->size = 0;
		cbor_head(w, 4, 2);
		cbor_head(w, 0, 1);
		bool ok = cbor_put(w, d);
		JS_FreeValue(ctx, d);
		JS_FreeValue(ctx, e);
		if (ok) return;
	}
	drop_exception();
	static const char last[] = "\x82\x01\xa2\x64" "code\x65" "error\x67" "message\x78\x21" "the step's error cannot be shown.";
	w->size = 0;
	memcpy(grow(w, sizeof last - 1), last, sizeof last - 1);
}

EXPORT(weft_step) uint32_t weft_step(uint32_t size) {
	JS_UpdateStackTop(rt);
	in_step = true;
	host_input(grow(&given, size), 0, size);
	JSValue input = cbor_take_step(given.at, size, protos);
	JSValue v = JS_IsException(input) ? input : settle(JS_Call(ctx, run_step, JS_UNDEFINED, 1, (JSValueConst *)&input), input);
	if (!JS_IsException(v) && JS_IsFunction(ctx, give_result)) {
		JSValue given = v;
		v = JS_Call(ctx, give_result, JS_UNDEFINED, 1, (JSValueConst *)&given);
		JS_FreeValue(ctx, given);
	}
	writer w = begin_writing();
	cbor_head(&w, 4, 2);
	cbor_head(&w, 0, 0);
	bool failed = JS_IsException(v) || !cbor_put(&w, v);
	if (failed) put_error(&w);
	host_output(w.at, (uint32_t)w.size);
	return failed;
}
