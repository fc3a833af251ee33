/* sourcemap.c: traces of an error with places in the author's files. README.md has the form of the map. The map is read from its
 * beginning each time: an error leaves a step once. */
#include "engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVALUATED "<input>" /* the file of text that a script has parsed */

typedef struct { const uint8_t *at, *end; bool bad; } input;

static uint32_t number(input *in) {
	uint32_t n = 0;
	for (int shift = 0; shift < 35; shift += 7) {
		if (in->at == in->end) break;
		uint8_t b = *in->at++;
		n |= (uint32_t)(b & 127) << shift;
		if (b < 128) return n;
	}
	in->bad = true;
	return 0;
}

static int32_t difference(input *in) {
	uint32_t n = number(in);
	return (int32_t)(n >> 1 ^ (0 - (n & 1)));
}

/* A place in the author's files; size 0: there is none. */
typedef struct { const char *file; uint32_t size, line, column; bool own; } place;

/* file_of reads the list of files up to the one with the given number, which counts from 1. */
static place file_of(input in, uint32_t files, uint32_t wanted) {
	place p = {0};
	for (uint32_t i = 1; i <= files && i <= wanted && !in.bad; i++) {
		uint32_t flags = number(&in), size = number(&in);
		if (in.bad || size > (size_t)(in.end - in.at)) break;
		if (i == wanted) p = (place){(const char *)in.at, size, 0, 0, flags & 1};
		in.at += size;
	}
	return p;
}

/* find looks a position of the bundle up; all count from 0. */
static place find(uint32_t line, uint32_t column) {
	input in = {(const uint8_t *)user_bundle.map, (const uint8_t *)user_bundle.map + user_bundle.map_size, false};
	if (user_bundle.map_size == 0 || number(&in) != 1) return (place){0};
	uint32_t files = number(&in);
	input list = in;
	for (uint32_t i = 0; i < files && !in.bad; i++) {
		number(&in);
		uint32_t size = number(&in);
		if (size > (size_t)(in.end - in.at)) in.bad = true;
		else in.at += size;
	}
	uint32_t segments = number(&in), at_line = 0, at_column = 0, file = 0, source_line = 0, source_column = 0;
	uint32_t best_file = 0, best_line = 0, best_column = 0;
	for (uint32_t i = 0; i < segments && !in.bad; i++) {
		uint32_t lines = number(&in), columns = number(&in);
		at_line += lines;
		at_column = lines ? columns : at_column + columns;
		file += (uint32_t)difference(&in);
		if (file) {
			source_line += (uint32_t)difference(&in);
			source_column += (uint32_t)difference(&in);
		}
		if (in.bad || at_line > line || (at_line == line && at_column > column)) break;
		best_file = at_line == line ? file : 0;
		best_line = source_line, best_column = source_column;
	}
	place p = best_file ? file_of(list, files, best_file) : (place){0};
	p.line = best_line, p.column = best_column;
	return p;
}

/* utf16 turns a column that counts code points into one that counts UTF-16 units. */
static uint32_t utf16(uint32_t line, uint32_t column) {
	const uint8_t *p = (const uint8_t *)user_bundle.source, *end = p + user_bundle.source_size;
	for (; line > 0 && p < end; p++) line -= *p == '\n';
	uint32_t units = 0;
	for (; column > 0 && p < end; p++) {
		if ((*p & 0xc0) == 0x80) continue;
		units += *p >= 0xf0 ? 2 : 1;
		column--;
	}
	return units + column;
}

/* put_frame adds a line of a trace, mapped: "    at NAME (FILE:LINE:COLUMN)", or "    at FILE:LINE:COLUMN" of an error of syntax.
 * It adds nothing for functions of the SDK. */
static void put_frame(writer *w, const char *s, const char *end) {
	uint32_t line = 0, column = 0;
	while (s < end && *s == ' ') s++;
	if (end - s < 3 || memcmp(s, "at ", 3)) return;
	s += 3;
	const char *open = end;
	while (open > s && *open != '(') open--;
	const char *name = s, *name_end = *open == '(' ? open - 1 : s, *file = *open == '(' ? open + 1 : s;
	const char *file_end = end;
	for (int colons = 0; file_end > file && colons < 2;) colons += *--file_end == ':';
	if (*file_end != ':' || sscanf(file_end, ":%u:%u", &line, &column) != 2 || line == 0 || column == 0) return;
	place p = {file, (uint32_t)(file_end - file), line - 1, column - 1, false};
	if (*open != '(' && p.size == sizeof EVALUATED - 1 && !memcmp(file, EVALUATED, p.size)) return; /* a place in what JSON.parse or eval read */
	if (p.size == sizeof BUNDLE_NAME - 1 && !memcmp(file, BUNDLE_NAME, p.size) && user_bundle.map_size) {
		p = find(line - 1, utf16(line - 1, column - 1));
		if (p.own || p.size == 0) return;
	}
	bool named = name_end > name && !(name_end - name == 11 && !memcmp(name, "<anonymous>", 11)) && !(name_end - name == 6 && !memcmp(name, "<eval>", 6));
	if (named) put_format(w, "%.*s (", (int)(name_end - name), name);
	put_format(w, "%.*s:%u:%u%s", (int)p.size, p.file, p.line + 1, p.column + 1, named ? ")" : "");
}

JSValue text_value(const writer *w) { return JS_NewStringLen(ctx, (const char *)(w->at ? w->at : (uint8_t *)""), w->size); }

JSValue stack_frames(JSValueConst error) {
	JSValue list = JS_NewArray(ctx), trace = JS_IsObject(error) ? JS_GetPropertyStr(ctx, error, "stack") : JS_UNDEFINED;
	if (JS_IsException(trace)) JS_FreeValue(ctx, JS_GetException(ctx));
	if (!JS_IsString(trace)) {
		JS_FreeValue(ctx, trace);
		return list;
	}
	size_t n = 0;
	const char *text = JS_ToCStringLen(ctx, &n, trace), *end = text + n;
	uint32_t frames = 0;
	for (const char *s = text; text && s < end;) {
		const char *line = memchr(s, '\n', (size_t)(end - s));
		if (!line) line = end;
		writer w = begin_writing();
		put_frame(&w, s, line);
		if (w.size) JS_DefinePropertyValueUint32(ctx, list, frames++, text_value(&w), JS_PROP_C_W_E);
		done_writing(&w);
		s = line + 1;
	}
	JS_FreeCString(ctx, text);
	JS_FreeValue(ctx, trace);
	return list;
}
