/* stack.h is included before the sources of QuickJS: see build.sh. It makes each recursion take a part of the C stack that is
 * proportional to the frames of its calls, which the host bounds and a module cannot see. */
#pragma once
#define STACK_LIMIT (960 << 10) /* of the 1 MiB that build.sh tells the linker: what a script's recursion may take */
#define RECURSION 1024          /* bytes that each level takes at least */
#define TAKE_STACK(size) ({ void *taken_ = __builtin_alloca(size); __asm__ volatile("" : : "r"(taken_)); })
#define js_check_stack_overflow(rt, size) (TAKE_STACK(RECURSION), stack_overflows(rt, size))

/* engine.c has these: the text of a function of the bundle is not copied. */
#include <stddef.h>
struct JSContext;
struct JSRuntime;
char *keep_source(struct JSContext *c, const char *text, size_t size);
void drop_source(struct JSRuntime *r, char *text);
