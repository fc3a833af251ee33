/* modules.c: the modules in C that steps have. The library's own table also names tests, sockets, profilers and codecs for languages
 * whose encodings are not frozen in; without them, the linker leaves their code and tables out. */
#include <Python.h>

#define MODULES(X) X(_abc) X(_ast) X(_asyncio) X(_bisect) X(_blake2) X(_codecs) X(_collections) X(_contextvars) X(_csv) X(_datetime) \
	X(_decimal) X(_elementtree) X(_functools) X(_heapq) X(_imp) X(_io) X(_json) X(_locale) X(_md5) X(_opcode) X(_operator) X(_pickle) \
	X(_queue) X(_random) X(_sha1) X(_sha256) X(_sha3) X(_sha512) X(_signal) X(_sre) X(_stat) X(_statistics) X(_string) X(_struct) \
	X(_symtable) X(_thread) X(_tokenize) X(_typing) X(_weakref) X(_zoneinfo) X(array) X(atexit) X(binascii) X(cmath) X(errno) X(gc) \
	X(itertools) X(math) X(posix) X(pyexpat) X(select) X(time) X(unicodedata)
#define DECLARE(name) extern PyObject *PyInit_##name(void);
#define ENTRY(name) {#name, PyInit_##name},

MODULES(DECLARE)
extern PyObject *PyMarshal_Init(void), *_PyWarnings_Init(void);

struct _inittab _PyImport_Inittab[] = {
	{"builtins", NULL}, {"sys", NULL}, {"marshal", PyMarshal_Init}, {"_warnings", _PyWarnings_Init}, MODULES(ENTRY) {NULL, NULL},
};
