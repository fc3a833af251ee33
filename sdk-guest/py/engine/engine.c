/* engine.c: CPython as a step module. The author's files lie in memory, where the builder has put them. weft_describe starts the
 * interpreter and imports the author's main module; the image of memory after that is what every invocation starts from. */
#include "engine.h"
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

#define HEADROOM (1 << 20) /* memory that usual steps need beyond the image */

/* Filled in by the builder: the last data segments of the module overwrite this struct. The source is a map in CBOR from the names of
 * the author's files to their bytes. */
struct { uint32_t source, source_size, map, map_size; } user_bundle = {1, 1, 1, 1};

extern struct _frozen weft_frozen[];
static bool in_step;
static PyObject *host_error, *run_step, *failure_of;
static PyObject *dry; /* the answer of all host calls while the SDK warms up; NULL otherwise */

void die(const char *text, size_t size) {
	while (size > 0) {
		ssize_t n = write(2, text, size);
		if (n <= 0) break;
		text += n, size -= (size_t)n;
	}
	__builtin_trap();
}

#define DIE(text) die(text "\n", sizeof text)

/* ---- the module _weft ---- */

/* raise_host_error raises the exception that the SDK makes of a failed host call. */
static PyObject *raise_host_error(PyObject *answer) {
	PyObject *e = PyObject_CallOneArg(host_error, answer);
	Py_DECREF(answer);
	if (!e) return NULL;
	PyErr_SetObject((PyObject *)Py_TYPE(e), e);
	Py_DECREF(e);
	return NULL;
}

static PyObject *refuse_outside(const char *name) {
	return raise_host_error(Py_BuildValue("{ss s:N}", "code", "failed_precondition", "message", PyUnicode_FromFormat("%s works only in a step", name)));
}

static PyObject *py_call(PyObject *self, PyObject *args) {
	unsigned which;
	PyObject *request;
	if (!PyArg_ParseTuple(args, "IO", &which, &request)) return NULL;
	if (which >= COUNT(calls)) return PyErr_Format(PyExc_ValueError, "there is no host call %u", which);
	if (!in_step && !dry && which != LOG) return refuse_outside(calls[which].name);
	writer w = begin_writing();
	if (!cbor_put(&w, request)) {
		done_writing(&w);
		return NULL;
	}
	if (dry) {
		PyObject *v = cbor_take((const uint8_t *)PyBytes_AS_STRING(dry), (size_t)PyBytes_GET_SIZE(dry));
		done_writing(&w);
		return v;
	}
	uint64_t r = calls[which].call(w.at, (uint32_t)w.size);
	uint32_t size = (uint32_t)r;
	w.size = 0;
	if (size) host_response(grow(&w, size), 0, size);
	PyObject *v = size ? cbor_take(w.at, size) : Py_NewRef(Py_None);
	done_writing(&w);
	return r >> 32 == 0 || !v ? v : raise_host_error(v);
}

static PyObject *py_encode(PyObject *self, PyObject *value) {
	writer w = begin_writing();
	PyObject *out = cbor_put(&w, value) ? PyBytes_FromStringAndSize((char *)w.at, (Py_ssize_t)w.size) : NULL;
	done_writing(&w);
	return out;
}

static PyObject *py_decode(PyObject *self, PyObject *bytes) {
	if (!PyBytes_Check(bytes)) return PyErr_Format(PyExc_TypeError, "bytes are expected");
	return cbor_take((const uint8_t *)PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
}

/* py_dry sets the answer of host calls, encoded, or ends with None that there is one. */
static PyObject *py_dry(PyObject *self, PyObject *answer) {
	Py_CLEAR(dry);
	if (PyBytes_Check(answer)) dry = Py_NewRef(answer);
	Py_RETURN_NONE;
}

static PyObject *py_files(PyObject *self, PyObject *none) { return cbor_take((const uint8_t *)user_bundle.source, user_bundle.source_size); }
static PyObject *py_in_step(PyObject *self, PyObject *none) { return PyBool_FromLong(in_step); }

static PyMethodDef methods[] = {
	{"call", py_call, METH_VARARGS, NULL},       {"encode", py_encode, METH_O, NULL},
	{"decode", py_decode, METH_O, NULL},         {"files", py_files, METH_NOARGS, NULL},
	{"in_step", py_in_step, METH_NOARGS, NULL},  {"dry", py_dry, METH_O, NULL},         {0},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_weft", NULL, -1, methods};

static PyObject *module_init(void) {
	PyObject *m = PyModule_Create(&module), *names = PyTuple_New(COUNT(calls));
	for (size_t i = 0; i < COUNT(calls); i++) PyTuple_SET_ITEM(names, (Py_ssize_t)i, PyUnicode_FromString(calls[i].name));
	PyModule_AddObject(m, "names", names);
	return m;
}

/* ---- starting ---- */

static void start(void) {
	PyImport_FrozenModules = weft_frozen;
	PyImport_AppendInittab("_weft", module_init);
	PyConfig c;
	PyConfig_InitIsolatedConfig(&c);
	c.site_import = 0, c.use_hash_seed = 1, c.hash_seed = 0, c.install_signal_handlers = 0, c.write_bytecode = 0;
	c.pathconfig_warnings = 0, c.module_search_paths_set = 1, c.buffered_stdio = 0;
	wchar_t **folders[] = {&c.prefix, &c.exec_prefix, &c.base_prefix, &c.base_exec_prefix, &c.executable, &c.stdlib_dir};
	for (size_t i = 0; i < COUNT(folders); i++) PyConfig_SetString(&c, folders[i], L"/python");
	PyConfig_SetString(&c, &c.stdio_encoding, L"utf-8");
	PyConfig_SetString(&c, &c.stdio_errors, L"backslashreplace");
	PyStatus s = Py_InitializeFromConfig(&c);
	PyConfig_Clear(&c);
	if (PyStatus_Exception(s)) {
		if (s.err_msg) fputs(s.err_msg, stderr);
		DIE("the interpreter does not start");
	}
}

/* die_of prints the exception that is set, as the SDK shows it: the text becomes part of the answer to the upload. */
static void __attribute__((noreturn)) die_of(PyObject *show) {
	PyObject *type, *e, *trace;
	PyErr_Fetch(&type, &e, &trace);
	PyErr_NormalizeException(&type, &e, &trace);
	if (e && trace) PyException_SetTraceback(e, trace);
	PyObject *text = show && e ? PyObject_CallOneArg(show, e) : NULL;
	Py_ssize_t n;
	const char *s = text ? PyUnicode_AsUTF8AndSize(text, &n) : NULL;
	if (s) die(s, (size_t)n);
	PyErr_Restore(type, e, trace);
	PyErr_PrintEx(0);
	DIE("the module cannot be described");
}

static PyObject *hook(PyObject *boot, const char *name) {
	PyObject *f = PyObject_GetAttrString(boot, name);
	if (!f) die_of(NULL);
	return f;
}

/* clear_free writes zeros to memory that is free: the image need not keep what was there. */
static void clear_free(void) {
	void **last = NULL;
	for (size_t size = 1 << 16, most = __builtin_wasm_memory_size(0); size >= 256; size >>= 1)
		for (void **p; (p = malloc(size)); last = p) {
			if (__builtin_wasm_memory_size(0) > most) {
				most = __builtin_wasm_memory_size(0);
				free(p);
				break;
			}
			memset(p, 0, size);
			*p = last;
		}
	while (last) {
		void **p = last;
		last = *p, *p = NULL;
		free(p);
	}
}

/* clear_frozen writes zeros to the bytecode of modules that have been imported, which nobody reads again: the frozen importer refuses
 * to import them a second time. */
static void clear_frozen(void) {
	PyObject *modules = PyImport_GetModuleDict();
	for (struct _frozen *f = weft_frozen; f->name; f++)
		if (PyDict_GetItemString(modules, f->name)) {
			memset((void *)f->code, 0, (size_t)f->size);
			f->code = NULL;
		}
}

/* clear_stack writes zeros to the stack below its caller: it lies at the beginning of memory and grows downwards. */
static __attribute__((noinline)) void clear_stack(void) {
	volatile char here;
	uintptr_t from = 1024, to = (uintptr_t)&here - 1024;
	if (to > from && to < 1 << 20) memset((void *)from, 0, to - from);
}

EXPORT(weft_describe) void weft_describe(void) {
	if (user_bundle.source <= 1) DIE("this is the engine without a bundle: build a plugin with weft build");
	start();
	PyObject *boot = PyImport_ImportModule("weft._boot");
	if (!boot) die_of(NULL);
	host_error = hook(boot, "host_error"), run_step = hook(boot, "step"), failure_of = hook(boot, "failure"), cbor_plain = hook(boot, "plain");
	PyObject *show = hook(boot, "show"), *describe = hook(boot, "describe"), *seal = hook(boot, "seal");
	PyObject *manifest = PyObject_CallNoArgs(describe);
	if (!manifest) die_of(show);
	writer w = begin_writing();
	if (!cbor_put(&w, manifest)) die_of(show);
	host_output(w.at, (uint32_t)w.size);
	done_writing(&w);
	Py_DECREF(manifest);
	PyObject *sealed = PyObject_CallNoArgs(seal);
	if (!sealed) die_of(show);
	Py_CLEAR(dry);
	Py_DECREF(sealed), Py_DECREF(show), Py_DECREF(describe), Py_DECREF(seal), Py_DECREF(boot);
	clear_frozen();
	clear_free();
	clear_stack();
	free(malloc(HEADROOM));
}

/* ---- a step ---- */

/* put_failure writes [1, error] for the exception that is set. An exception that cannot be encoded gives an error of its own. */
static void put_failure(writer *w) {
	for (int tries = 0; tries < 2; tries++) {
		PyObject *type, *e, *trace;
		PyErr_Fetch(&type, &e, &trace);
		PyErr_NormalizeException(&type, &e, &trace);
		if (e && trace) PyException_SetTraceback(e, trace);
		PyObject *d = PyObject_CallOneArg(failure_of, e ? e : Py_None);
		w->size = 0;
		cbor_head(w, 4, 2);
		cbor_head(w, 0, 1);
		if (d && cbor_put(w, d)) return;
	}
	PyErr_Clear();
	static const char last[] = "\x82\x01\xa2\x64" "code\x65" "error\x67" "message\x78\x21" "the step's error cannot be shown.";
	w->size = 0;
	memcpy(grow(w, sizeof last - 1), last, sizeof last - 1);
}

EXPORT(weft_step) uint32_t weft_step(uint32_t size) {
	in_step = true;
	writer w = begin_writing();
	host_input(grow(&w, size), 0, size);
	PyObject *input = cbor_take(w.at, size);
	done_writing(&w);
	PyObject *v = input ? PyObject_CallOneArg(run_step, input) : NULL;
	w = begin_writing();
	cbor_head(&w, 4, 2);
	cbor_head(&w, 0, 0);
	bool failed = !v || !cbor_put(&w, v);
	if (failed) put_failure(&w);
	host_output(w.at, (uint32_t)w.size);
	return failed;
}
