/* engine.h: what the files of the engine share. One runtime, one context: both are made by weft_describe and are part of the
 * image that every invocation starts from. All functions run on the one thread that a module has. */
#pragma once
#include "quickjs.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern JSRuntime *rt;
extern JSContext *ctx;
extern bool in_step; /* weft_step runs: host calls and timers are allowed */

/* Filled in by the builder: the last data segments of the module overwrite this struct. */
typedef struct { uint32_t source, source_size, map, map_size; } bundle;
extern bundle user_bundle;
#define BUNDLE_NAME "bundle.js" /* the file that traces of the bundle's code name */

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A buffer that grows. Bytes of a writer belong to whoever calls done_writing. */
typedef struct { uint8_t *at; size_t size, room; } writer;
uint8_t *grow(writer *w, size_t n); /* adds n bytes and returns their place; traps if there is no memory */
writer begin_writing(void);
void done_writing(writer *w);
void put_format(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* cbor.c */
void cbor_init(void);
bool cbor_put(writer *w, JSValueConst value);           /* false: an exception is pending */
void cbor_head(writer *w, int major, uint64_t number);
JSValue cbor_take(const uint8_t *from, size_t size);    /* JS_EXCEPTION: an exception is pending */
JSValue cbor_take_step(const uint8_t *from, size_t size, JSValueConst protos); /* step and trigger of a step's input, not what follows */
JSValue cbor_float(double number);                      /* an object that is encoded as a float */

/* internals.c */
JSValue settled_promise(JSContext *c, bool failed, JSValueConst value); /* the promise of an async function that has ended */
bool begin_arenas(JSRuntime *r); /* false: there is no memory */

/* engine.c */
uint64_t host_random_call(const void *request, uint32_t size);
void host_response_copy(void *to, uint32_t offset, uint32_t size);
void die(const char *text, size_t size) __attribute__((noreturn)); /* prints to standard error and traps */

/* globals.c */
void globals_init(JSValueConst native, JSValueConst global);
void globals_seal(void);     /* forgets random state: each invocation seeds its own */
bool timers_left(void);
JSValue timers_run_next(void); /* moves the clock to the earliest deadline and calls its function */

/* sourcemap.c */
JSValue stack_frames(JSValueConst error); /* an array of texts "name (file:line:column)", without frames of the SDK */
JSValue text_value(const writer *w);
