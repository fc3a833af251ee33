/* cbor.c: values of JavaScript to and from CBOR. What the host sends is read with every length, depth and text checked, so that an
 * error of the host is a TypeError that names the offset, and never a read out of bounds. */
#include "engine.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 72           /* open arrays and maps of a message */
#define MAX_BYTES (32u << 20)  /* of a message */
#define MAX_SAFE 9007199254740991ull

/* ---- buffers ---- */

static writer spare; /* the buffer of the last message; getters that make host calls find it empty */

uint8_t *grow(writer *w, size_t n) {
	if (w->size + n > w->room) {
		w->room = (w->size + n) * 2 + 256;
		w->at = realloc(w->at, w->room);
		if (!w->at) die("out of memory", 13);
	}
	w->size += n;
	return w->at + w->size - n;
}

writer begin_writing(void) {
	writer w = spare;
	spare = (writer){0};
	w.size = 0;
	return w;
}

void done_writing(writer *w) {
	if (spare.at) free(w->at);
	else spare = *w;
	*w = (writer){0};
}

void put_format(writer *w, const char *format, ...) {
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int n = vsnprintf(NULL, 0, format, args);
	if (n > 0) {
		vsnprintf((char *)grow(w, (size_t)n + 1), (size_t)n + 1, format, again);
		w->size--;
	}
	va_end(again);
	va_end(args);
}

/* ---- encoding ---- */

/* A crumb is a place in the value that is being encoded: the way back to the root for messages, and for finding cycles. */
typedef struct crumb {
	const struct crumb *up;
	const void *object; /* the array or object that is open */
	JSAtom key;         /* of the present field; JS_ATOM_NULL in an array */
	uint32_t index;
	int depth;
} crumb;

static JSClassID class_object, class_number, class_string, class_boolean, class_float;
static JSAtom atom_to_json, atom_value, atom_value_of;

static JSClassID class_of(JSValue object) {
	JSClassID id = JS_GetClassID(object);
	JS_FreeValue(ctx, object);
	return id;
}

void cbor_init(void) {
	static const JSClassDef def = {.class_name = "Float"};
	class_object = class_of(JS_NewObject(ctx));
	class_number = class_of(JS_ToObject(ctx, JS_NewInt32(ctx, 0)));
	class_boolean = class_of(JS_ToObject(ctx, JS_FALSE));
	JSValue text = JS_NewString(ctx, "");
	class_string = class_of(JS_ToObject(ctx, text));
	JS_FreeValue(ctx, text);
	JS_NewClassID(rt, &class_float);
	JS_NewClass(rt, class_float, &def);
	atom_to_json = JS_NewAtom(ctx, "toJSON");
	atom_value = JS_NewAtom(ctx, "value");
	atom_value_of = JS_NewAtom(ctx, "valueOf");
}

JSValue cbor_float(double number) {
	JSValue o = JS_NewObjectProtoClass(ctx, JS_NULL, class_float);
	JS_DefinePropertyValue(ctx, o, atom_value, JS_NewFloat64(ctx, number), 0);
	return o;
}

void cbor_head(writer *w, int major, uint64_t n) {
	uint8_t m = (uint8_t)(major << 5);
	if (n < 24) {
		*grow(w, 1) = m | (uint8_t)n;
		return;
	}
	int size = n <= 0xff ? 0 : n <= 0xffff ? 1 : n <= 0xffffffff ? 2 : 3;
	uint8_t *p = grow(w, 1 + ((size_t)1 << size));
	*p++ = m | (uint8_t)(24 + size);
	for (int i = (1 << size) - 1; i >= 0; i--) *p++ = (uint8_t)(n >> (8 * i));
}

/* put_path appends the place in the value, as in "items[3].when". Arrays around the outermost field are the message's. */
static bool put_path(writer *w, const crumb *at) {
	if (!at) return false;
	bool began = put_path(w, at->up);
	if (at->key == JS_ATOM_NULL) {
		if (began) put_format(w, "[%u]", at->index);
		return began;
	}
	const char *name = JS_AtomToCString(ctx, at->key);
	put_format(w, began ? ".%.100s" : "%.100s", name ? name : "?");
	JS_FreeCString(ctx, name);
	return true;
}

/* refuse throws an error of the given constructor with the place of the value. It returns false. */
static bool refuse(const crumb *at, bool range, const char *format, ...) {
	writer w = {0}, path = {0};
	char text[256];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	bool inside = put_path(&path, at);
	if (inside) put_format(&w, "%s (at %.*s)", text, (int)path.size, (char *)path.at);
	else put_format(&w, "%s", text);
	if (range) JS_ThrowRangeError(ctx, "%.*s", (int)w.size, (char *)w.at);
	else JS_ThrowTypeError(ctx, "%.*s", (int)w.size, (char *)w.at);
	free(w.at);
	free(path.at);
	return false;
}

static bool put_bytes(writer *w, const crumb *at, int major, const void *from, size_t size) {
	if (size > MAX_BYTES - w->size) return refuse(at, true, "a message is larger than %u bytes", MAX_BYTES);
	cbor_head(w, major, size);
	memcpy(grow(w, size), from, size);
	return true;
}

/* put_utf8 writes a text. The engine gives a lone surrogate as three bytes ED A0..BF xx: U+FFFD is as long. */
static bool put_utf8(writer *w, const crumb *at, const char *text, size_t size) {
	if (!put_bytes(w, at, 3, text, size)) return false;
	uint8_t *p = w->at + w->size - size, *end = w->at + w->size;
	while ((p = memchr(p, 0xed, (size_t)(end - p)))) {
		if (end - p >= 3 && p[1] >= 0xa0) memcpy(p, "\xef\xbf\xbd", 3);
		p++;
	}
	return true;
}

static bool put_text(writer *w, const crumb *at, JSValueConst v) {
	size_t n;
	const char *s = JS_ToCStringLen(ctx, &n, v);
	if (!s) return false;
	bool ok = put_utf8(w, at, s, n);
	JS_FreeCString(ctx, s);
	return ok;
}

/* half returns the bits of a half that equals a single, or -1. */
static int32_t half(uint32_t bits) {
	uint32_t sign = bits >> 16 & 0x8000, fraction = bits & 0x7fffff;
	int exponent = (int)(bits >> 23 & 0xff) - 127 + 15;
	if ((bits & 0x7fffffff) == 0) return (int32_t)sign;
	if (exponent >= 1 && exponent <= 30) return fraction & 0x1fff ? -1 : (int32_t)(sign | (uint32_t)exponent << 10 | fraction >> 13);
	if (exponent > 0 || exponent < -9) return -1;
	fraction |= 0x800000;
	int shift = 14 - exponent;
	return fraction & ((1u << shift) - 1) ? -1 : (int32_t)(sign | fraction >> shift);
}

static void put_big_endian(writer *w, uint8_t first, uint64_t bits, int size) {
	uint8_t *p = grow(w, 1 + (size_t)size);
	*p++ = first;
	while (size-- > 0) *p++ = (uint8_t)(bits >> (8 * size));
}

static bool put_float(writer *w, const crumb *at, double d) {
	if (!isfinite(d)) return refuse(at, false, "%s is not a value that can leave a step", isnan(d) ? "NaN" : d < 0 ? "-Infinity" : "Infinity");
	float single = (float)d;
	uint32_t bits;
	uint64_t wide;
	memcpy(&bits, &single, 4);
	memcpy(&wide, &d, 8);
	if ((double)single != d) put_big_endian(w, 0xfb, wide, 8);
	else if (half(bits) >= 0) put_big_endian(w, 0xf9, (uint64_t)half(bits), 2);
	else put_big_endian(w, 0xfa, bits, 4);
	return true;
}

static bool put_number(writer *w, const crumb *at, double d) {
	if (d != trunc(d) || fabs(d) > 9007199254740992.0 || (d == 0 && signbit(d))) return put_float(w, at, d);
	if (d < 0) cbor_head(w, 1, (uint64_t)(-1 - (int64_t)d));
	else cbor_head(w, 0, (uint64_t)d);
	return true;
}

static bool put_bigint(writer *w, const crumb *at, JSValueConst v) {
	size_t n;
	const char *s = JS_ToCStringLen(ctx, &n, v);
	if (!s) return false;
	bool negative = *s == '-', fits = n <= 21;
	unsigned __int128 m = 0;
	for (const char *p = s + negative; *p && fits; p++) m = m * 10 + (unsigned)(*p - '0');
	JS_FreeCString(ctx, s);
	if (!fits || (negative ? m > (unsigned __int128)1 << 63 : m >> 64)) return refuse(at, true, "a bigint must be from -2^63 to 2^64-1");
	cbor_head(w, negative, (uint64_t)(negative ? m - 1 : m));
	return true;
}

static bool put(writer *w, const crumb *at, JSValueConst v, bool ask);

/* open checks that an array or object can be entered. */
static bool open(const crumb *at, crumb *in, JSValueConst v) {
	*in = (crumb){at, JS_VALUE_GET_PTR(v), JS_ATOM_NULL, 0, at ? at->depth + 1 : 1};
	for (const crumb *c = at; c; c = c->up) if (c->object == in->object) return refuse(at, false, "a value that contains itself cannot leave a step");
	return in->depth <= MAX_DEPTH || refuse(at, false, "a value nests deeper than %d levels", MAX_DEPTH);
}

static bool put_array(writer *w, const crumb *at, JSValueConst v) {
	crumb in;
	int64_t n;
	if (!open(at, &in, v) || JS_GetLength(ctx, v, &n)) return false;
	if (n > MAX_BYTES) return refuse(at, true, "an array of %lld items is too long for a message", (long long)n);
	cbor_head(w, 4, (uint64_t)n);
	bool ok = true;
	for (; ok && in.index < n; in.index++) {
		JSValue item = JS_GetPropertyUint32(ctx, v, in.index);
		ok = !JS_IsException(item) && put(w, &in, item, true);
		JS_FreeValue(ctx, item);
	}
	return ok;
}

static bool put_field(writer *w, crumb *in, JSValueConst v, uint32_t *used) {
	JSValue item = JS_GetProperty(ctx, v, in->key);
	if (JS_IsUndefined(item)) return true;
	if (JS_IsException(item)) return false;
	size_t n;
	const char *name = JS_AtomToCStringLen(ctx, &n, in->key);
	bool ok = name && put_utf8(w, in, name, n) && put(w, in, item, true);
	JS_FreeCString(ctx, name);
	JS_FreeValue(ctx, item);
	++*used;
	return ok;
}

static bool put_fields(writer *w, const crumb *at, JSValueConst v) {
	crumb in;
	JSPropertyEnum *fields;
	uint32_t n, used = 0;
	if (!open(at, &in, v) || JS_GetOwnPropertyNames(ctx, &fields, &n, v, JS_GPN_STRING_MASK | JS_GPN_ENUM_ONLY)) return false;
	size_t head = w->size;
	bool ok = true;
	cbor_head(w, 5, n);
	int size = (int)(w->size - head) - 1;
	for (uint32_t i = 0; ok && i < n; i++) {
		in.key = fields[i].atom;
		ok = put_field(w, &in, v, &used);
	}
	JS_FreePropertyEnum(ctx, fields, n);
	if (!ok || used == n) return ok;
	if (size == 0) w->at[head] = 0xa0 | (uint8_t)used; /* undefined fields were left out: the head keeps its width */
	for (int i = 0; i < size; i++) w->at[head + 1 + (size_t)i] = (uint8_t)(used >> (8 * (size - 1 - i)));
	return true;
}

/* put_special writes objects that are not plain. */
static bool put_special(writer *w, const crumb *at, JSValueConst v, JSClassID id) {
	if (JS_IsFunction(ctx, v)) return refuse(at, false, "a function cannot leave a step");
	if (JS_GetTypedArrayType(v) == JS_TYPED_ARRAY_UINT8) {
		size_t n = 0;
		uint8_t *bytes = JS_GetUint8Array(ctx, &n, v);
		return (bytes || n == 0) && put_bytes(w, at, 2, bytes ? bytes : (const uint8_t *)"", n);
	}
	if (id == class_number || id == class_boolean || id == class_string) {
		JSValue inner = JS_Invoke(ctx, v, atom_value_of, 0, NULL);
		bool ok = !JS_IsException(inner) && (JS_IsObject(inner) ? refuse(at, false, "valueOf gives an object") : put(w, at, inner, false));
		JS_FreeValue(ctx, inner);
		return ok;
	}
	if (JS_IsPromise(v)) return refuse(at, false, "a promise cannot leave a step: await it");
	if (JS_IsMap(v) || JS_IsSet(v) || JS_IsWeakMap(v) || JS_IsWeakSet(v) || JS_IsWeakRef(v) || JS_IsRegExp(v) || JS_IsError(v) || JS_IsArrayBuffer(v) ||
	    JS_IsDataView(v) || JS_GetTypedArrayType(v) >= 0) {
		JSAtom atom = JS_GetClassName(rt, id);
		const char *name = JS_AtomToCString(ctx, atom);
		const char *use = JS_IsMap(v) ? "Object.fromEntries" : JS_IsSet(v) ? "an array" : JS_IsError(v) ? "its message" : "a Uint8Array, an array or an object";
		refuse(at, false, "%s %s cannot leave a step: use %s", name && strchr("AEIOU", *name) ? "an" : "a", name ? name : "value", use);
		JS_FreeCString(ctx, name);
		JS_FreeAtom(ctx, atom);
		return false;
	}
	return put_fields(w, at, v);
}

static bool put_object(writer *w, const crumb *at, JSValueConst v, bool ask) {
	JSClassID id = JS_GetClassID(v);
	if (JS_IsArray(v)) return put_array(w, at, v);
	if (id == class_float) {
		JSValue number = JS_GetProperty(ctx, v, atom_value);
		double d;
		return !JS_ToFloat64(ctx, &d, number) && put_float(w, at, d);
	}
	if (ask) {
		JSValue f = JS_GetProperty(ctx, v, atom_to_json);
		if (JS_IsException(f)) return false;
		if (JS_IsFunction(ctx, f)) {
			JSValue r = JS_Call(ctx, f, v, 0, NULL);
			JS_FreeValue(ctx, f);
			bool ok = !JS_IsException(r) && put(w, at, r, false);
			JS_FreeValue(ctx, r);
			return ok;
		}
		JS_FreeValue(ctx, f);
	}
	return id == class_object ? put_fields(w, at, v) : put_special(w, at, v, id);
}

/* put writes a value; ask says whether to call its toJSON. */
static bool put(writer *w, const crumb *at, JSValueConst v, bool ask) {
	if (w->size > MAX_BYTES) return refuse(at, true, "a message is larger than %u bytes", MAX_BYTES);
	switch (JS_VALUE_GET_NORM_TAG(v)) {
	case JS_TAG_INT: {
		int32_t i = JS_VALUE_GET_INT(v);
		cbor_head(w, i < 0, (uint64_t)(i < 0 ? -1 - (int64_t)i : i));
		return true;
	}
	case JS_TAG_BOOL: return *grow(w, 1) = JS_VALUE_GET_BOOL(v) ? 0xf5 : 0xf4, true;
	case JS_TAG_NULL:
	case JS_TAG_UNDEFINED: return *grow(w, 1) = 0xf6, true;
	case JS_TAG_FLOAT64: return put_number(w, at, JS_VALUE_GET_FLOAT64(v));
	case JS_TAG_STRING:
	case JS_TAG_STRING_ROPE: return put_text(w, at, v);
	case JS_TAG_SHORT_BIG_INT:
	case JS_TAG_BIG_INT: return put_bigint(w, at, v);
	case JS_TAG_OBJECT: return put_object(w, at, v, ask);
	case JS_TAG_SYMBOL: return refuse(at, false, "a symbol cannot leave a step");
	}
	return refuse(at, false, "a value of this type cannot leave a step");
}

bool cbor_put(writer *w, JSValueConst v) { return put(w, NULL, v, true); }

/* ---- decoding ---- */

typedef struct { const uint8_t *start, *at, *end; } reader;

static JSValue fault(const reader *r, const char *what) {
	return JS_ThrowTypeError(ctx, "malformed CBOR at byte %u: %s", (unsigned)(r->at - r->start), what);
}

/* utf8_end returns the number of leading bytes that are valid UTF-8. */
static size_t utf8_end(const uint8_t *p, size_t n) {
	for (size_t i = 0; i < n;) {
		uint8_t b = p[i];
		int more = b < 0x80 ? 0 : b >= 0xc2 && b < 0xe0 ? 1 : b >= 0xe0 && b < 0xf0 ? 2 : b >= 0xf0 && b < 0xf5 ? 3 : -1;
		if (more < 0 || n - i <= (size_t)more) return i;
		for (int k = 1; k <= more; k++) {
			uint8_t low = k > 1 ? 0x80 : b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80, high = k > 1 ? 0xbf : b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
			if (p[i + (size_t)k] < low || p[i + (size_t)k] > high) return i;
		}
		i += 1 + (size_t)more;
	}
	return n;
}

/* head reads the head of an item. It returns -1 with an exception if there is none. */
static int head(reader *r, uint64_t *n, int *info) {
	if (r->at == r->end) return fault(r, "the message ends early"), -1;
	int major = *r->at >> 5;
	*info = *r->at & 31;
	if (*info > 27) return fault(r, "a length that is not definite"), -1;
	int size = *info < 24 ? 0 : 1 << (*info - 24);
	if (r->end - r->at <= size) return fault(r, "the message ends early"), -1;
	*n = *info < 24 ? (uint64_t)*info : 0;
	for (int i = 1; i <= size; i++) *n = *n << 8 | r->at[i];
	r->at += 1 + size;
	return major;
}

/* text reads the bytes of a text whose head has been read. */
static const char *text(reader *r, uint64_t n) {
	if (n > (uint64_t)(r->end - r->at)) return fault(r, "a text longer than the message"), NULL;
	size_t good = utf8_end(r->at, (size_t)n);
	if (good < n) return r->at += good, fault(r, "a text that is not UTF-8"), NULL;
	r->at += n;
	return (const char *)r->at - n;
}

static JSValue take(reader *r, int depth);

static JSValue take_array(reader *r, uint64_t n, int depth) {
	if (n > (uint64_t)(r->end - r->at)) return fault(r, "an array longer than the message");
	JSValue few[16], *items = n <= COUNT(few) ? few : js_malloc(ctx, n * sizeof *items);
	if (!items) return JS_EXCEPTION;
	JSValue list = JS_UNDEFINED;
	int have = 0;
	while (have < (int)n && !JS_IsException(list)) {
		items[have] = take(r, depth + 1);
		if (JS_IsException(items[have])) list = JS_EXCEPTION;
		else have++;
	}
	if (!JS_IsException(list)) list = JS_NewArrayFrom(ctx, have, items);
	else while (have > 0) JS_FreeValue(ctx, items[--have]);
	if (items != few) js_free(ctx, items);
	return list;
}

/* keys is what is known of the keys of a map that were read. */
typedef struct { const uint8_t *last; size_t size; bool mixed; } keys;

/* repeats reports whether a key is there already. Keys in canonical order cannot repeat; others are looked up. */
static bool repeats(keys *k, JSValueConst map, JSAtom key, const uint8_t *from, size_t size) {
	int order = k->last ? memcmp(k->last, from, k->size < size ? k->size : size) : -1;
	k->mixed = k->mixed || order > 0 || (order == 0 && k->size >= size);
	k->last = from, k->size = size;
	return k->mixed && JS_GetOwnProperty(ctx, NULL, map, key) != 0;
}

static bool take_field(reader *r, JSValueConst map, keys *k, int depth) {
	uint64_t n;
	int info;
	const uint8_t *from = r->at;
	int major = head(r, &n, &info);
	if (major < 0) return false;
	if (major != 3) return r->at = from, fault(r, "a key that is not a text"), false;
	const char *name = text(r, n);
	if (!name) return false;
	k->mixed = k->mixed || info > (n < 24 ? 23 : n < 256 ? 24 : n < 65536 ? 25 : 26); /* a head that is wider than its number needs */
	JSAtom key = JS_NewAtomLen(ctx, name, (size_t)n);
	bool ok = !repeats(k, map, key, from, (size_t)(r->at - from));
	if (!ok) r->at = from, fault(r, "a key that is there twice");
	JSValue item = ok ? take(r, depth + 1) : JS_EXCEPTION;
	ok = !JS_IsException(item) && JS_DefinePropertyValue(ctx, map, key, item, JS_PROP_C_W_E) >= 0;
	JS_FreeAtom(ctx, key);
	return ok;
}

static JSValue take_map(reader *r, uint64_t n, int depth, JSValueConst proto) {
	if (n > (uint64_t)(r->end - r->at) / 2) return fault(r, "a map longer than the message");
	JSValue map = JS_IsObject(proto) ? JS_NewObjectProto(ctx, proto) : JS_NewObject(ctx);
	keys k = {0};
	for (; n > 0; n--) {
		if (!take_field(r, map, &k, depth)) {
			JS_FreeValue(ctx, map);
			return JS_EXCEPTION;
		}
	}
	return map;
}

static JSValue take_float(reader *r, uint64_t bits, int info) {
	double d;
	if (info == 25) {
		int exponent = (int)(bits >> 10 & 31);
		double m = (double)(bits & 0x3ff);
		d = exponent == 31 ? INFINITY : exponent ? ldexp(m + 1024, exponent - 25) : ldexp(m, -24);
		if (bits & 0x8000) d = -d;
	} else if (info == 26) {
		uint32_t narrow = (uint32_t)bits;
		float f;
		memcpy(&f, &narrow, 4);
		d = f;
	} else memcpy(&d, &bits, 8);
	return isfinite(d) ? JS_NewFloat64(ctx, d) : fault(r, "a float that is not finite");
}

static JSValue take(reader *r, int depth) {
	const uint8_t *from = r->at;
	uint64_t n;
	int info, major = head(r, &n, &info);
	if (major < 0) return JS_EXCEPTION;
	if ((major == 4 || major == 5) && depth >= MAX_DEPTH) return r->at = from, fault(r, "it nests too deep");
	switch (major) {
	case 0: return n <= MAX_SAFE ? JS_NewInt64(ctx, (int64_t)n) : JS_NewBigUint64(ctx, n);
	case 1:
		if (n >> 63) return r->at = from, fault(r, "an integer below -2^63");
		return n < MAX_SAFE ? JS_NewInt64(ctx, -1 - (int64_t)n) : JS_NewBigInt64(ctx, -1 - (int64_t)n);
	case 2:
		if (n > (uint64_t)(r->end - r->at)) return fault(r, "a byte string longer than the message");
		r->at += n;
		return JS_NewUint8ArrayCopy(ctx, r->at - n, (size_t)n);
	case 3: {
		const char *s = text(r, n);
		return s ? JS_NewStringLen(ctx, s, (size_t)n) : JS_EXCEPTION;
	}
	case 4: return take_array(r, n, depth);
	case 5: return take_map(r, n, depth, JS_UNDEFINED);
	case 7:
		if (info == 20 || info == 21) return JS_NewBool(ctx, info == 21);
		if (info == 22) return JS_NULL;
		if (info >= 25) return take_float(r, n, info);
	}
	return r->at = from, fault(r, major == 6 ? "a tag" : "a simple value that has no meaning here");
}

JSValue cbor_take(const uint8_t *from, size_t size) {
	reader r = {from, from, from + size};
	JSValue v = take(&r, 0);
	if (!JS_IsException(v) && r.at != r.end) {
		JS_FreeValue(ctx, v);
		return fault(&r, "bytes after the message");
	}
	return v;
}

/* take_event reads [type, fields, ...]: fields get the prototype that protos has for the type. What is not an event is read as it is. */
static JSValue take_event(reader *r, JSValueConst protos) {
	const uint8_t *from = r->at;
	uint64_t n, fields;
	int info;
	if (head(r, &n, &info) != 4 || n < 2 || n > 3 || r->at == r->end || *r->at >> 5 != 3) {
		if (!JS_HasException(ctx)) return r->at = from, take(r, 1);
		return JS_EXCEPTION;
	}
	JSValue items[3];
	int have = 0;
	items[have++] = take(r, 2);
	if (!JS_IsException(items[0]) && r->at < r->end && *r->at >> 5 == 5 && head(r, &fields, &info) == 5) {
		JSAtom type = JS_ValueToAtom(ctx, items[0]);
		JSValue proto = JS_GetProperty(ctx, protos, type);
		JS_FreeAtom(ctx, type);
		items[have++] = JS_IsException(proto) ? proto : take_map(r, fields, 2, proto);
		JS_FreeValue(ctx, proto);
	}
	while (have < (int)n && !JS_IsException(items[have - 1])) items[have++] = take(r, 2);
	if (!JS_IsException(items[have - 1])) return JS_NewArrayFrom(ctx, have, items);
	while (--have > 0) JS_FreeValue(ctx, items[have - 1]);
	return JS_EXCEPTION;
}

JSValue cbor_take_step(const uint8_t *from, size_t size, JSValueConst protos) {
	reader r = {from, from, from + size};
	uint64_t n;
	int info;
	if (head(&r, &n, &info) != 4 || n < 2) return JS_HasException(ctx) ? JS_EXCEPTION : fault(&r, "the input of a step is another");
	JSValue items[2] = {take(&r, 1), JS_UNDEFINED};
	if (JS_IsException(items[0])) return JS_EXCEPTION;
	items[1] = take_event(&r, protos);
	if (!JS_IsException(items[1])) return JS_NewArrayFrom(ctx, 2, items);
	JS_FreeValue(ctx, items[0]);
	return JS_EXCEPTION;
}
