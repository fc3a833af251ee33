/* internals.c: what needs the inside of QuickJS. build.sh appends it to quickjs.c. */

/* pending_promise makes a promise without the two functions that settle it: what is here settles it directly. */
static JSValue pending_promise(JSContext *ctx)
{
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
    return promise;
}

/* settle does for a promise what its functions resolve and reject do. */
static void settle(JSContext *ctx, JSValueConst promise, bool failed, JSValueConst value)
{
    if (failed || !JS_IsObject(value)) {
        fulfill_or_reject_promise(ctx, promise, value, failed);
        return;
    }
    JSValue then = js_same_value(ctx, value, promise) ? JS_ThrowTypeError(ctx, "promise self resolution") : JS_GetProperty(ctx, value, JS_ATOM_then);
    if (JS_IsException(then)) {
        JSValue error = JS_GetException(ctx);
        fulfill_or_reject_promise(ctx, promise, error, true);
        JS_FreeValue(ctx, error);
    } else if (JS_IsFunction(ctx, then)) {
        JSValueConst args[] = { promise, value, then };
        JS_EnqueueJob(ctx, js_promise_resolve_thenable_job, 3, args);
    } else {
        fulfill_or_reject_promise(ctx, promise, value, false);
    }
    JS_FreeValue(ctx, then);
}

JSValue settled_promise(JSContext *ctx, bool failed, JSValueConst value)
{
    JSValue promise = pending_promise(ctx);
    if (!JS_IsException(promise))
        settle(ctx, promise, failed, value);
    return promise;
}

/* async_promise makes the promise of an async function, which keeps it where it had the two functions. See build.sh. */
static JSValue async_promise(JSContext *ctx, JSValue *kept)
{
    JSValue promise = pending_promise(ctx);
    if (!JS_IsException(promise))
        kept[0] = js_dup(promise);
    return promise;
}

/* settle_async stands in the place of the calls of the two functions. */
static JSValue settle_async(JSContext *ctx, JSValueConst promise, bool failed, int argc, JSValueConst *argv)
{
    settle(ctx, promise, failed, argv[0]);
    return JS_UNDEFINED;
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
