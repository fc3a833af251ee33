/* cbor.c: Python values to and from CBOR. Every length, depth and text of a message from the host is checked: an error of the host is
 * a ValueError that names the offset, and never a read out of bounds. */
#include "engine.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 72           /* open lists and maps of a message */
#define MAX_BYTES (32u << 20)  /* of a message */

PyObject *cbor_plain;

/* ---- buffers ---- */

static writer spare; /* the buffer of the last message; host calls inside of an encoding find it empty */

uint8_t *grow(writer *w, size_t n) {
	if (w->size + n > w->room) {
		w->room = (w->size + n) * 2 + 256;
		w->at = realloc(w->at, w->room);
		if (!w->at) die("out of memory\n", 14);
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

/* ---- encoding ---- */

/* A crumb is a place in the value that is being encoded: the way back to the root for messages, and for finding cycles. */
typedef struct crumb {
	const struct crumb *up;
	PyObject *object; /* the list, map or object that is open */
	PyObject *key;    /* of the present field; NULL in a list */
	Py_ssize_t index;
	int depth;
} crumb;

/* names_type reports whether a crumb is in an event, [type, fields]: its fields are the root for people. */
static bool names_type(const crumb *at) {
	return !at->up && at->index == 1 && PyList_Check(at->object) && PyList_GET_SIZE(at->object) == 2 && PyUnicode_Check(PyList_GET_ITEM(at->object, 0));
}

static PyObject *path_of(const crumb *at) {
	if (!at || names_type(at)) return PyUnicode_FromString("");
	PyObject *up = path_of(at->up), *out;
	if (!up) return NULL;
	if (at->key) out = PyUnicode_FromFormat(PyUnicode_GET_LENGTH(up) ? "%U.%S" : "%U%S", up, at->key);
	else if (at->index >= 0) out = PyUnicode_FromFormat("%U[%zd]", up, at->index);
	else out = Py_NewRef(up);
	Py_DECREF(up);
	return out;
}

/* refuse raises an exception of the given type that names the place. */
static bool refuse(const crumb *at, PyObject *type, const char *format, ...) {
	va_list args;
	va_start(args, format);
	PyObject *text = PyUnicode_FromFormatV(format, args), *path = text ? path_of(at) : NULL;
	va_end(args);
	if (path && PyUnicode_GET_LENGTH(path)) PyErr_Format(type, "%U (at %U)", text, path);
	else if (path) PyErr_SetObject(type, text);
	Py_XDECREF(text);
	Py_XDECREF(path);
	return false;
}

void cbor_head(writer *w, int major, uint64_t n) {
	int size = n < 24 ? 0 : n < 256 ? 1 : n < 65536 ? 2 : n >> 32 == 0 ? 4 : 8;
	uint8_t *p = grow(w, 1 + (size_t)size);
	*p++ = (uint8_t)(major << 5 | (size == 0 ? (int)n : size == 1 ? 24 : size == 2 ? 25 : size == 4 ? 26 : 27));
	while (size-- > 0) *p++ = (uint8_t)(n >> (8 * size));
}

static bool put_bytes(writer *w, const crumb *at, int major, const void *from, size_t size) {
	if (size > MAX_BYTES - w->size) return refuse(at, PyExc_ValueError, "a message is larger than %u bytes", MAX_BYTES);
	cbor_head(w, major, size);
	memcpy(grow(w, size), from, size);
	return true;
}

/* put_text writes a text. A lone surrogate becomes U+FFFD, which is as long in UTF-8. */
static bool put_text(writer *w, const crumb *at, PyObject *v) {
	Py_ssize_t n;
	const char *s = PyUnicode_AsUTF8AndSize(v, &n);
	if (s) return put_bytes(w, at, 3, s, (size_t)n);
	PyErr_Clear();
	PyObject *bytes = PyUnicode_AsEncodedString(v, "utf-8", "surrogatepass");
	if (!bytes) return false;
	bool ok = put_bytes(w, at, 3, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
	if (ok) {
		uint8_t *p = w->at + w->size - PyBytes_GET_SIZE(bytes), *end = w->at + w->size;
		while ((p = memchr(p, 0xed, (size_t)(end - p)))) {
			if (end - p >= 3 && p[1] >= 0xa0) memcpy(p, "\xef\xbf\xbd", 3);
			p++;
		}
	}
	Py_DECREF(bytes);
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
	if (!isfinite(d)) return refuse(at, PyExc_ValueError, "%s is not a value that can leave a step", isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
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

static bool put_int(writer *w, const crumb *at, PyObject *v) {
	int overflow;
	long long n = PyLong_AsLongLongAndOverflow(v, &overflow);
	if (overflow == 0) {
		if (n < 0) cbor_head(w, 1, (uint64_t)(-1 - n));
		else cbor_head(w, 0, (uint64_t)n);
		return true;
	}
	unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(v) : 0;
	if (overflow < 0 || PyErr_Occurred()) {
		PyErr_Clear();
		return refuse(at, PyExc_OverflowError, "an integer must be from -2^63 to 2^64-1");
	}
	cbor_head(w, 0, u);
	return true;
}

static bool put(writer *w, const crumb *at, PyObject *v);

/* open_object checks that a list, map or object can be entered. */
static bool open_object(const crumb *at, crumb *in, PyObject *v) {
	*in = (crumb){at, v, NULL, -1, at ? at->depth + 1 : 1};
	for (const crumb *c = at; c; c = c->up) if (c->object == v) return refuse(at, PyExc_ValueError, "a value that contains itself cannot leave a step");
	return in->depth <= MAX_DEPTH || refuse(at, PyExc_ValueError, "a value nests deeper than %d levels", MAX_DEPTH);
}

static bool put_list(writer *w, const crumb *at, PyObject *v) {
	crumb in;
	if (!open_object(at, &in, v)) return false;
	Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
	cbor_head(w, 4, (uint64_t)n);
	for (in.index = 0; in.index < n; in.index++) {
		if (in.index >= PySequence_Fast_GET_SIZE(v)) return refuse(at, PyExc_RuntimeError, "a list changes while it leaves the step");
		PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(v, in.index));
		bool ok = put(w, &in, item);
		Py_DECREF(item);
		if (!ok) return false;
	}
	return true;
}

static bool put_map(writer *w, const crumb *at, PyObject *v) {
	crumb in;
	if (!open_object(at, &in, v)) return false;
	Py_ssize_t n = PyDict_GET_SIZE(v), i = 0, count = 0;
	PyObject *key, *item;
	cbor_head(w, 5, (uint64_t)n);
	while (PyDict_Next(v, &i, &key, &item)) {
		if (!PyUnicode_Check(key)) return refuse(at, PyExc_TypeError, "a key of a dict must be a str: %R is %s", key, Py_TYPE(key)->tp_name);
		in.key = key;
		Py_INCREF(key);
		Py_INCREF(item);
		bool ok = put_text(w, &in, key) && put(w, &in, item);
		Py_DECREF(key);
		Py_DECREF(item);
		if (!ok) return false;
		if (++count > n || PyDict_GET_SIZE(v) != n) return refuse(at, PyExc_RuntimeError, "a dict changes while it leaves the step");
	}
	return true;
}

/* put_other asks the SDK for a plain value. */
static bool put_other(writer *w, const crumb *at, PyObject *v) {
	crumb in;
	if (!open_object(at, &in, v)) return false;
	PyObject *plain = cbor_plain ? PyObject_CallOneArg(cbor_plain, v) : NULL;
	if (!plain) return PyErr_Occurred() ? false : refuse(at, PyExc_TypeError, "%s cannot leave a step", Py_TYPE(v)->tp_name);
	bool ok = plain == Py_NotImplemented
		? refuse(at, PyExc_TypeError, "an object of the type %s cannot leave a step: use numbers, text, bytes, lists, dicts or models", Py_TYPE(v)->tp_name)
		: put(w, &in, plain);
	Py_DECREF(plain);
	return ok;
}

static bool put(writer *w, const crumb *at, PyObject *v) {
	if (w->size > MAX_BYTES) return refuse(at, PyExc_ValueError, "a message is larger than %u bytes", MAX_BYTES);
	if (v == Py_None) return *grow(w, 1) = 0xf6, true;
	if (v == Py_True) return *grow(w, 1) = 0xf5, true;
	if (v == Py_False) return *grow(w, 1) = 0xf4, true;
	if (PyUnicode_CheckExact(v)) return put_text(w, at, v);
	if (PyLong_CheckExact(v)) return put_int(w, at, v);
	if (PyFloat_CheckExact(v)) return put_float(w, at, PyFloat_AS_DOUBLE(v));
	if (PyDict_CheckExact(v)) return put_map(w, at, v);
	if (PyList_CheckExact(v) || PyTuple_Check(v)) return put_list(w, at, v);
	if (PyBytes_Check(v)) return put_bytes(w, at, 2, PyBytes_AS_STRING(v), (size_t)PyBytes_GET_SIZE(v));
	return put_other(w, at, v); /* also subclasses: an Enum may be an int */
}

bool cbor_put(writer *w, PyObject *v) { return put(w, NULL, v); }

/* ---- decoding ---- */

typedef struct { const uint8_t *start, *at, *end; } reader;

static PyObject *fault(const reader *r, const char *what) {
	return PyErr_Format(PyExc_ValueError, "malformed CBOR at byte %u: %s", (unsigned)(r->at - r->start), what);
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

/* text reads a text whose head has been read. */
static PyObject *text(reader *r, uint64_t n) {
	if (n > (uint64_t)(r->end - r->at)) return fault(r, "a text longer than the message");
	PyObject *s = PyUnicode_DecodeUTF8((const char *)r->at, (Py_ssize_t)n, NULL);
	if (!s && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
		PyErr_Clear();
		return fault(r, "a text that is not UTF-8");
	}
	r->at += n;
	return s;
}

static PyObject *take(reader *r, int depth);

static PyObject *take_list(reader *r, uint64_t n, int depth) {
	if (n > (uint64_t)(r->end - r->at)) return fault(r, "a list longer than the message");
	PyObject *list = PyList_New((Py_ssize_t)n);
	for (uint64_t i = 0; list && i < n; i++) {
		PyObject *item = take(r, depth + 1);
		if (item) PyList_SET_ITEM(list, (Py_ssize_t)i, item);
		else Py_CLEAR(list);
	}
	return list;
}

static bool take_field(reader *r, PyObject *map, int depth) {
	uint64_t n;
	int info;
	const uint8_t *from = r->at;
	int major = head(r, &n, &info);
	if (major < 0) return false;
	if (major != 3) return r->at = from, fault(r, "a key that is not a text"), false;
	PyObject *key = text(r, n);
	if (!key) return false;
	int repeats = PyDict_Contains(map, key);
	if (repeats > 0) r->at = from, fault(r, "a key that is there twice");
	PyObject *item = repeats == 0 ? take(r, depth + 1) : NULL;
	bool ok = item && PyDict_SetItem(map, key, item) == 0;
	Py_DECREF(key);
	Py_XDECREF(item);
	return ok;
}

static PyObject *take_map(reader *r, uint64_t n, int depth) {
	if (n > (uint64_t)(r->end - r->at) / 2) return fault(r, "a map longer than the message");
	PyObject *map = PyDict_New();
	for (; map && n > 0; n--) if (!take_field(r, map, depth)) Py_CLEAR(map);
	return map;
}

static PyObject *take_float(reader *r, uint64_t bits, int info) {
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
	return isfinite(d) ? PyFloat_FromDouble(d) : fault(r, "a float that is not finite");
}

static PyObject *take(reader *r, int depth) {
	const uint8_t *from = r->at;
	uint64_t n;
	int info, major = head(r, &n, &info);
	if (major < 0) return NULL;
	if ((major == 4 || major == 5) && depth >= MAX_DEPTH) return r->at = from, fault(r, "it nests too deep");
	switch (major) {
	case 0: return PyLong_FromUnsignedLongLong(n);
	case 1:
		if (n >> 63) return r->at = from, fault(r, "an integer below -2^63");
		return PyLong_FromLongLong(-1 - (long long)n);
	case 2:
		if (n > (uint64_t)(r->end - r->at)) return fault(r, "a byte string longer than the message");
		r->at += n;
		return PyBytes_FromStringAndSize((const char *)r->at - n, (Py_ssize_t)n);
	case 3: return text(r, n);
	case 4: return take_list(r, n, depth);
	case 5: return take_map(r, n, depth);
	case 7:
		if (info == 20 || info == 21) return PyBool_FromLong(info == 21);
		if (info == 22) Py_RETURN_NONE;
		if (info >= 25) return take_float(r, n, info);
	}
	return r->at = from, fault(r, major == 6 ? "a tag" : "a simple value that has no meaning here");
}

PyObject *cbor_take(const uint8_t *from, size_t size) {
	reader r = {from, from, from + size};
	PyObject *v = take(&r, 0);
	if (v && r.at != r.end) {
		Py_DECREF(v);
		return fault(&r, "bytes after the message");
	}
	return v;
}
