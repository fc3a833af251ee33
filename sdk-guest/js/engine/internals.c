/* internals.c: what needs the inside of QuickJS. build.sh appends it to quickjs.c. */

/* settled_promise makes the promise that an async function without an await gives: JS_NewSettledPromise, which it equals, makes
 * two functions more. */
JSValue settled_promise(JSContext *ctx, bool failed, JSValueConst value)
{
    if (!failed && JS_IsObject(value)) {
        JSValue then = JS_GetProperty(ctx, value, JS_ATOM_then);
        bool plain = !JS_IsException(then) && !JS_IsFunction(ctx, then);
        if (JS_IsException(then))
            JS_FreeValue(ctx, JS_GetException(ctx));
        JS_FreeValue(ctx, then);
        if (!plain)
            return JS_NewSettledPromise(ctx, false, value);
    }
    JSValue promise = JS_NewObjectClass(ctx, JS_CLASS_PROMISE);
    if (JS_IsException(promise))
        return promise;
    JSPromiseData *s = js_mallocz(ctx, sizeof(*s));
    if (!s) {
        JS_FreeValue(ctx, promise);
        return JS_EXCEPTION;
    }
    init_list_head(&s->promise_reactions[0]);
    init_list_head(&s->promise_reactions[1]);
    s->promise_result = JS_UNDEFINED;
    JS_SetOpaqueInternal(promise, s);
    fulfill_or_reject_promise(ctx, promise, value, failed);
    return promise;
}

#define STEP_ARENAS 15 /* size classes up to 128 bytes, of which a step needs nearly all */

/* begin_arenas lets a step allocate in memory of its own, and not in the gaps of what describing has allocated: the host copies each
 * page back that a step has written. */
bool begin_arenas(JSRuntime *rt)
{
    JSArenaState *s = &rt->arena_state;
    for (int i = 0; i < JS_ARENA_BLOCK_SIZE_COUNT; i++) {
        while (!list_empty(&s->free_arena_list[i])) {
            struct list_head *el = s->free_arena_list[i].next;
            list_del(el);
            init_list_head(el); /* it is deleted once more if the arena becomes empty */
        }
    }
    uint8_t *at = rt->mf.js_malloc(rt->malloc_state.opaque, STEP_ARENAS * JS_ARENA_SIZE);
    if (!at)
        return false;
    for (int i = 0; i < STEP_ARENAS; i++, at += JS_ARENA_SIZE) {
        JSArena *ar = (JSArena *)at;
        int n = (JS_ARENA_SIZE - sizeof(JSArena)) / arena_block_sizes[i];
        *ar = (JSArena){ .block_size_idx = i, .n_blocks = n + 1, .n_used_blocks = 1 }; /* never empty, so that it is never freed */
        for (int k = 0; k < n; k++) {
            JSMallocBlockHeader *b = arena_get_block(ar, k, arena_block_sizes[i]);
            b->u.free_next = k + 1 < n ? k + 1 : JS_ARENA_FREE_NIL;
            b->block_size_idx = i;
        }
        list_add(&ar->link, &s->arena_list[i]);
        list_add(&ar->free_link, &s->free_arena_list[i]);
    }
    return true;
}
