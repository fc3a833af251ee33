/* engine.h: what the files of the engine share. All functions run on the one thread that a module has. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A buffer that grows. Bytes of a writer belong to the function that calls done_writing. */
typedef struct { uint8_t *at; size_t size, room; } writer;
uint8_t *grow(writer *w, size_t n); /* adds n bytes and returns their place; traps if there is no memory */
writer begin_writing(void);
void done_writing(writer *w);

/* cbor.c */
bool cbor_put(writer *w, PyObject *value);              /* false: an exception is set */
void cbor_head(writer *w, int major, uint64_t number);
PyObject *cbor_take(const uint8_t *from, size_t size);  /* NULL: an exception is set */
extern PyObject *cbor_plain;                            /* the SDK's function that gives a plain value for any other object */

/* engine.c */
void die(const char *text, size_t size) __attribute__((noreturn)); /* prints to standard error and traps */
