/* globals.c: what scripts expect of a platform and what is too slow or impossible in JavaScript: randomness, timers, UTF-8, hashes. */
#include "engine.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

__attribute__((import_module("wasi_snapshot_preview1"), import_name("random_get"))) extern int wasi_random_get(void *, uint32_t);

/* bytes_of returns the bytes of a Uint8Array, or NULL with an exception. */
static uint8_t *bytes_of(JSValueConst v, size_t *size) {
	if (JS_GetTypedArrayType(v) != JS_TYPED_ARRAY_UINT8) {
		JS_ThrowTypeError(ctx, "a Uint8Array is expected");
		return NULL;
	}
	uint8_t *p = JS_GetUint8Array(ctx, size, v);
	return p || *size || JS_HasException(ctx) ? p : (uint8_t *)"";
}

/* ---- randomness ---- */

/* The state of Math.random is zero in the image: the first draw of an invocation seeds it. */
static uint64_t state[2];

void globals_seal(void) { state[0] = state[1] = 0; }

static JSValue js_math_random(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
	while (!(state[0] | state[1])) wasi_random_get(state, sizeof state);
	uint64_t a = state[0], b = state[1];
	state[0] = b;
	a ^= a << 23;
	state[1] = a ^ b ^ a >> 18 ^ b >> 5;
	return JS_NewFloat64(c, (double)((state[1] + b) >> 11) * 0x1p-53);
}

/* In a step, bytes come from the host's `random`: nobody can compute them from the module. */
static JSValue js_random_fill(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
	size_t size = 0;
	uint8_t *to = bytes_of(argv[0], &size);
	if (!to) return JS_EXCEPTION;
	if (!in_step) return wasi_random_get(to, (uint32_t)size), JS_UNDEFINED;
	while (size > 0) {
		uint32_t n = size < 4096 ? (uint32_t)size : 4096;
		writer w = begin_writing();
		cbor_head(&w, 4, 1);
		cbor_head(&w, 0, n);
		uint64_t r = host_random_call(w.at, (uint32_t)w.size);
		uint32_t got = (uint32_t)r;
		uint8_t *answer = (w.size = 0, grow(&w, got));
		host_response_copy(answer, 0, got);
		uint32_t head = n < 24 ? 1 : n < 256 ? 2 : 3;
		bool ok = r >> 32 == 0 && got == head + n && answer[0] >> 5 == 2;
		if (ok) memcpy(to, answer + head, n);
		done_writing(&w);
		if (!ok) return JS_ThrowInternalError(c, "the host gives no random bytes");
		to += n, size -= n;
	}
	return JS_UNDEFINED;
}

/* ---- timers ---- */

typedef struct {
	uint32_t id;
	int64_t due, every; /* nanoseconds; every is -1 for a timeout */
	uint64_t order;
	int argc;
	JSValue call, *argv;
} timer;

static timer *timers;
static uint32_t timer_count, timer_room, timer_id;
static uint64_t timer_order;

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void timer_free(timer *t) {
	for (int i = 0; i < t->argc; i++) JS_FreeValue(ctx, t->argv[i]);
	free(t->argv);
	JS_FreeValue(ctx, t->call);
}

static JSValue js_set_timer(JSContext *c, JSValueConst self, int argc, JSValueConst *argv, int repeats) {
	const char *name = repeats ? "setInterval" : "setTimeout";
	double ms = 0;
	if (!in_step) return JS_ThrowTypeError(c, "%s works only in a step", name);
	if (argc < 1 || !JS_IsFunction(c, argv[0])) return JS_ThrowTypeError(c, "%s wants a function", name);
	if (argc > 1 && JS_ToFloat64(c, &ms, argv[1])) return JS_EXCEPTION;
	ms = ms > 0x7fffffff ? 1 : ms >= 0 ? trunc(ms) : 0;
	if (timer_count == timer_room) {
		timer_room = timer_room * 2 + 8;
		timers = realloc(timers, timer_room * sizeof *timers);
		if (!timers) die("out of memory", 13);
	}
	int64_t delay = (int64_t)ms * 1000000;
	timer *t = &timers[timer_count++];
	*t = (timer){++timer_id, now() + delay, repeats ? (delay ? delay : 1000000) : -1, timer_order++, argc > 2 ? argc - 2 : 0, JS_DupValue(c, argv[0]), NULL};
	if (t->argc) {
		t->argv = malloc((size_t)t->argc * sizeof *t->argv);
		if (!t->argv) die("out of memory", 13);
		for (int i = 0; i < t->argc; i++) t->argv[i] = JS_DupValue(c, argv[i + 2]);
	}
	return JS_NewUint32(c, t->id);
}

static void timer_remove(uint32_t i) {
	timer_free(&timers[i]);
	timers[i] = timers[--timer_count];
}

static JSValue js_clear_timer(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
	double id;
	if (argc < 1 || JS_IsUndefined(argv[0]) || JS_IsNull(argv[0])) return JS_UNDEFINED;
	if (JS_ToFloat64(c, &id, argv[0])) return JS_EXCEPTION;
	for (uint32_t i = 0; i < timer_count; i++) {
		if (timers[i].id != id) continue;
		timer_remove(i);
		break;
	}
	return JS_UNDEFINED;
}

bool timers_left(void) { return timer_count > 0; }

JSValue timers_run_next(void) {
	uint32_t first = 0;
	for (uint32_t i = 1; i < timer_count; i++) {
		timer *a = &timers[i], *b = &timers[first];
		if (a->due < b->due || (a->due == b->due && a->order < b->order)) first = i;
	}
	int64_t wait = timers[first].due - now();
	if (wait > 0) nanosleep(&(struct timespec){wait / 1000000000, (long)(wait % 1000000000)}, NULL);
	timer t = timers[first];
	JSValue call = JS_DupValue(ctx, t.call), result;
	if (t.every >= 0) { /* stays in the list: its function may clear it */
		timers[first].due += t.every;
		timers[first].order = timer_order++;
		JSValue *argv = malloc((size_t)(t.argc + 1) * sizeof *argv);
		if (!argv) die("out of memory", 13);
		for (int i = 0; i < t.argc; i++) argv[i] = JS_DupValue(ctx, t.argv[i]);
		result = JS_Call(ctx, call, JS_UNDEFINED, t.argc, (JSValueConst *)argv);
		for (int i = 0; i < t.argc; i++) JS_FreeValue(ctx, argv[i]);
		free(argv);
	} else {
		timers[first] = timers[--timer_count];
		result = JS_Call(ctx, call, JS_UNDEFINED, t.argc, (JSValueConst *)t.argv);
		timer_free(&t);
	}
	JS_FreeValue(ctx, call);
	return result;
}

/* ---- UTF-8 ---- */

static JSValue js_utf8_encode(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
	size_t n;
	const char *s = JS_ToCStringLen(c, &n, argv[0]);
	if (!s) return JS_EXCEPTION;
	JSValue v = JS_NewUint8ArrayCopy(c, (const uint8_t *)s, n);
	JS_FreeCString(c, s);
	uint8_t *p = JS_IsException(v) ? NULL : JS_GetUint8Array(c, &n, v);
	for (size_t i = 0; p && i + 2 < n; i++) if (p[i] == 0xed && p[i + 1] >= 0xa0) memcpy(p + i, "\xef\xbf\xbd", 3);
	return v;
}

/* sequence returns the length of the valid sequence at p, or minus the length of the invalid bytes that one U+FFFD stands for. */
static int sequence(const uint8_t *p, size_t n) {
	uint8_t b = p[0], low = 0x80, high = 0xbf;
	int more = b < 0x80 ? 0 : b >= 0xc2 && b < 0xe0 ? 1 : b >= 0xe0 && b < 0xf0 ? 2 : b >= 0xf0 && b < 0xf5 ? 3 : -1;
	if (more < 0) return -1;
	if (b == 0xe0) low = 0xa0;
	if (b == 0xed) high = 0x9f;
	if (b == 0xf0) low = 0x90;
	if (b == 0xf4) high = 0x8f;
	for (int i = 1; i <= more; i++, low = 0x80, high = 0xbf) if ((size_t)i >= n || p[i] < low || p[i] > high) return -i;
	return 1 + more;
}

static JSValue js_utf8_decode(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
	size_t n = 0;
	const uint8_t *p = bytes_of(argv[0], &n);
	if (!p) return JS_EXCEPTION;
	bool fatal = argc > 1 && JS_ToBool(c, argv[1]) > 0;
	writer w = begin_writing();
	size_t from = 0;
	for (size_t i = 0; i < n;) {
		int k = sequence(p + i, n - i);
		if (k > 0) { i += (size_t)k; continue; }
		if (fatal) {
			done_writing(&w);
			return JS_ThrowTypeError(c, "the bytes are not UTF-8 (at byte %u)", (unsigned)i);
		}
		memcpy(grow(&w, i - from), p + from, i - from);
		memcpy(grow(&w, 3), "\xef\xbf\xbd", 3);
		i += (size_t)-k;
		from = i;
	}
	JSValue v;
	if (w.size == 0) v = JS_NewStringLen(c, (const char *)p, n);
	else {
		memcpy(grow(&w, n - from), p + from, n - from);
		v = text_value(&w);
	}
	done_writing(&w);
	return v;
}

/* ---- hashes: FIPS 180-4 ---- */

typedef struct {
	int kind; /* 1, 256, 384, 512 */
	uint64_t h[8], bytes;
	uint8_t block[128];
	size_t used;
} hash;

static const uint64_t K[80] = { /* the first half of each is K of SHA-256 */
	0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc, 0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b,
	0xab1c5ed5da6d8118, 0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2, 0x72be5d74f27b896f, 0x80deb1fe3b1696b1,
	0x9bdc06a725c71235, 0xc19bf174cf692694, 0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65, 0x2de92c6f592b0275,
	0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5, 0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4,
	0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70, 0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed,
	0x53380d139d95b3df, 0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b, 0xa2bfe8a14cf10364, 0xa81a664bbc423001,
	0xc24b8b70d0f89791, 0xc76c51a30654be30, 0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8, 0x19a4c116b8d2d0c8,
	0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8, 0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3,
	0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec, 0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915,
	0xc67178f2e372532b, 0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178, 0x06f067aa72176fba, 0x0a637dc5a2c898a6,
	0x113f9804bef90dae, 0x1b710b35131c471b, 0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c, 0x4cc5d4becb3e42b6,
	0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
};

static uint32_t rotl(uint32_t x, int n) { return x << n | x >> (32 - n); }
static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }
static uint64_t rotr64(uint64_t x, int n) { return x >> n | x << (64 - n); }

static uint64_t big(const uint8_t *p, int size) {
	uint64_t n = 0;
	for (int i = 0; i < size; i++) n = n << 8 | p[i];
	return n;
}

static void sha1_block(hash *s, const uint8_t *p) {
	uint32_t w[80], v[5];
	for (int i = 0; i < 80; i++) w[i] = i < 16 ? (uint32_t)big(p + 4 * i, 4) : rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (int i = 0; i < 5; i++) v[i] = (uint32_t)s->h[i];
	for (int i = 0; i < 80; i++) {
		uint32_t f = i < 20 ? (v[1] & v[2]) | (~v[1] & v[3]) : i >= 40 && i < 60 ? (v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3]) : v[1] ^ v[2] ^ v[3];
		uint32_t k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
		uint32_t t = rotl(v[0], 5) + f + v[4] + k + w[i];
		v[4] = v[3], v[3] = v[2], v[2] = rotl(v[1], 30), v[1] = v[0], v[0] = t;
	}
	for (int i = 0; i < 5; i++) s->h[i] = (uint32_t)s->h[i] + v[i];
}

static void sha256_block(hash *s, const uint8_t *p) {
	uint32_t w[64], v[8];
	for (int i = 0; i < 64; i++) {
		if (i < 16) { w[i] = (uint32_t)big(p + 4 * i, 4); continue; }
		uint32_t a = w[i - 15], b = w[i - 2];
		w[i] = w[i - 16] + (rotr(a, 7) ^ rotr(a, 18) ^ a >> 3) + w[i - 7] + (rotr(b, 17) ^ rotr(b, 19) ^ b >> 10);
	}
	for (int i = 0; i < 8; i++) v[i] = (uint32_t)s->h[i];
	for (int i = 0; i < 64; i++) {
		uint32_t t = v[7] + (rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + (uint32_t)(K[i] >> 32) + w[i];
		uint32_t u = (rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof *v);
		v[4] += t, v[0] = t + u;
	}
	for (int i = 0; i < 8; i++) s->h[i] = (uint32_t)s->h[i] + v[i];
}

static void sha512_block(hash *s, const uint8_t *p) {
	uint64_t w[80], v[8];
	for (int i = 0; i < 80; i++) {
		if (i < 16) { w[i] = big(p + 8 * i, 8); continue; }
		uint64_t a = w[i - 15], b = w[i - 2];
		w[i] = w[i - 16] + (rotr64(a, 1) ^ rotr64(a, 8) ^ a >> 7) + w[i - 7] + (rotr64(b, 19) ^ rotr64(b, 61) ^ b >> 6);
	}
	memcpy(v, s->h, sizeof v);
	for (int i = 0; i < 80; i++) {
		uint64_t t = v[7] + (rotr64(v[4], 14) ^ rotr64(v[4], 18) ^ rotr64(v[4], 41)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + K[i] + w[i];
		uint64_t u = (rotr64(v[0], 28) ^ rotr64(v[0], 34) ^ rotr64(v[0], 39)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof *v);
		v[4] += t, v[0] = t + u;
	}
	for (int i = 0; i < 8; i++) s->h[i] += v[i];
}

static size_t block_size(int kind) { return kind > 256 ? 128 : 64; }
static size_t digest_size(int kind) { return kind == 1 ? 20 : (size_t)kind / 8; }

static void hash_begin(hash *s, int kind) {
	static const uint64_t sha1[8] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
	static const uint64_t sha384[8] = {0xcbbb9d5dc1059ed8, 0x629a292a367cd507, 0x9159015a3070dd17, 0x152fecd8f70e5939,
		0x67332667ffc00b31, 0x8eb44a8768581511, 0xdb0c2e0d64f98fa7, 0x47b5481dbefa4fa4};
	static const uint64_t sha512[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
		0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
	s->kind = kind, s->bytes = 0, s->used = 0;
	for (int i = 0; i < 8; i++) s->h[i] = kind == 1 ? sha1[i] : kind == 256 ? sha512[i] >> 32 : kind == 384 ? sha384[i] : sha512[i];
}

static void hash_block(hash *s, const uint8_t *p) { (s->kind == 1 ? sha1_block : s->kind == 256 ? sha256_block : sha512_block)(s, p); }

static void hash_add(hash *s, const uint8_t *p, size_t n) {
	size_t size = block_size(s->kind);
	s->bytes += n;
	while (n > 0) {
		if (s->used == 0 && n >= size) {
			hash_block(s, p);
			p += size, n -= size;
			continue;
		}
		size_t k = size - s->used < n ? size - s->used : n;
		memcpy(s->block + s->used, p, k);
		s->used += k, p += k, n -= k;
		if (s->used == size) hash_block(s, s->block), s->used = 0;
	}
}

static void hash_end(hash *s, uint8_t *digest) {
	size_t size = block_size(s->kind), tail = size / 8;
	uint64_t bits = s->bytes * 8;
	s->block[s->used++] = 0x80;
	if (s->used > size - tail) {
		memset(s->block + s->used, 0, size - s->used);
		hash_block(s, s->block);
		s->used = 0;
	}
	memset(s->block + s->used, 0, size - s->used);
	for (int i = 0; i < 8; i++) s->block[size - 1 - (size_t)i] = (uint8_t)(bits >> (8 * i));
	hash_block(s, s->block);
	int word = s->kind > 256 ? 8 : 4;
	for (size_t i = 0; i < digest_size(s->kind); i++) digest[i] = (uint8_t)(s->h[i / (size_t)word] >> (8 * (word - 1 - (int)(i % (size_t)word))));
}

/* kind_of returns the kind of hash that a name like "SHA-256" means, or 0 with an exception. */
static int kind_of(JSValueConst v) {
	const char *name = JS_ToCString(ctx, v);
	if (!name) return 0;
	static const struct { const char *name; int kind; } kinds[] = {{"SHA-1", 1}, {"SHA-256", 256}, {"SHA-384", 384}, {"SHA-512", 512}};
	int kind = 0;
	for (size_t i = 0; i < COUNT(kinds); i++) if (!strcmp(kinds[i].name, name)) kind = kinds[i].kind;
	if (!kind) JS_ThrowTypeError(ctx, "no hash is called %s: use SHA-1, SHA-256, SHA-384 or SHA-512", name);
	JS_FreeCString(ctx, name);
	return kind;
}

static JSValue js_digest(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
	size_t n = 0;
	int kind = kind_of(argv[0]);
	const uint8_t *p = kind ? bytes_of(argv[1], &n) : NULL;
	if (!p) return JS_EXCEPTION;
	hash s;
	uint8_t out[64];
	hash_begin(&s, kind);
	hash_add(&s, p, n);
	hash_end(&s, out);
	return JS_NewUint8ArrayCopy(c, out, digest_size(kind));
}

static JSValue js_hmac(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) { /* RFC 2104 */
	size_t n = 0, key_size = 0;
	int kind = kind_of(argv[0]);
	const uint8_t *key = kind ? bytes_of(argv[1], &key_size) : NULL, *p = key ? bytes_of(argv[2], &n) : NULL;
	if (!p) return JS_EXCEPTION;
	hash s;
	uint8_t pad[128] = {0}, out[64];
	if (key_size > block_size(kind)) {
		hash_begin(&s, kind);
		hash_add(&s, key, key_size);
		hash_end(&s, pad);
	} else memcpy(pad, key, key_size);
	for (size_t i = 0; i < sizeof pad; i++) pad[i] ^= 0x36;
	hash_begin(&s, kind);
	hash_add(&s, pad, block_size(kind));
	hash_add(&s, p, n);
	hash_end(&s, out);
	for (size_t i = 0; i < sizeof pad; i++) pad[i] ^= 0x36 ^ 0x5c;
	hash_begin(&s, kind);
	hash_add(&s, pad, block_size(kind));
	hash_add(&s, out, digest_size(kind));
	hash_end(&s, out);
	return JS_NewUint8ArrayCopy(c, out, digest_size(kind));
}

/* class_name is the name of an object's class as the engine knows it: no script can change it. */
static JSValue js_class_name(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
	JSAtom name = JS_GetClassName(rt, JS_GetClassID(argv[0]));
	JSValue v = JS_AtomToString(c, name);
	JS_FreeAtom(c, name);
	return v;
}

void globals_init(JSValueConst native, JSValueConst global) {
	static const JSCFunctionListEntry natives[] = {
		JS_CFUNC_DEF("utf8Encode", 1, js_utf8_encode),
		JS_CFUNC_DEF("utf8Decode", 2, js_utf8_decode),
		JS_CFUNC_DEF("digest", 2, js_digest),
		JS_CFUNC_DEF("hmac", 3, js_hmac),
		JS_CFUNC_DEF("randomFill", 1, js_random_fill),
		JS_CFUNC_DEF("className", 1, js_class_name),
	};
	static const JSCFunctionListEntry globals[] = {
		JS_CFUNC_MAGIC_DEF("setTimeout", 1, js_set_timer, 0),
		JS_CFUNC_MAGIC_DEF("setInterval", 1, js_set_timer, 1),
		JS_CFUNC_DEF("clearTimeout", 1, js_clear_timer),
		JS_CFUNC_DEF("clearInterval", 1, js_clear_timer),
	};
	JS_SetPropertyFunctionList(ctx, native, natives, COUNT(natives));
	JS_SetPropertyFunctionList(ctx, global, globals, COUNT(globals));
	JSValue math = JS_GetPropertyStr(ctx, global, "Math");
	JS_DefinePropertyValueStr(ctx, math, "random", JS_NewCFunction(ctx, js_math_random, "random", 0), JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
	JS_FreeValue(ctx, math);
	for (const char *const *name = (const char *const[]){"SharedArrayBuffer", "Atomics", NULL}; *name; name++) {
		JSAtom atom = JS_NewAtom(ctx, *name);
		JS_DeleteProperty(ctx, global, atom, 0);
		JS_FreeAtom(ctx, atom);
	}
}
