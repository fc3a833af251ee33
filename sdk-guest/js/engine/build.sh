#!/usr/bin/env bash
# Builds the engine: sdk-guest/js/engine/build.sh OUT writes engine.wasm. The result is the same on every machine.
#
# The sources of QuickJS-ng come from the crate libquickjs-ng-sys (its C files; nothing of Rust is used), the compiler from the
# package ziglang. Both are fetched once, outside the checkout, and held to their checksums. WEFT_ENGINES names the folder.
set -euo pipefail

crate=libquickjs-ng-sys version=0.14.0 # QuickJS-ng 0.18.0
checksum=9c81e864c33a1d1543f2f651d7622de0e8fb9b8e0c50b808eee606c056dd02e2

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
out=${1:?usage: build.sh OUT}
cache=${WEFT_ENGINES:-${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}/weft-engines}
mkdir -p "$cache"

say() { printf 'weft: %s\n' "$*" >&2; }
die() {
	say "$*"
	exit 1
}

# fetch_crate: cargo fetches the crate and checks its checksum, which a lock file pins.
fetch_crate() {
	local fetch=$cache/fetch cargo
	cargo=$(command -v wasm32-cargo || command -v cargo) || die 'building the engine needs cargo, to fetch its sources'
	mkdir -p "$fetch/src"
	printf '[package]\nname = "fetch"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n%s = "=%s"\n' "$crate" "$version" >"$fetch/Cargo.toml"
	: >"$fetch/src/lib.rs"
	say "fetching $crate $version (once)"
	(cd "$fetch" && "$cargo" vendor --quiet --versioned-dirs "$cache/vendor" >/dev/null) || die "cargo could not fetch $crate"
	grep -A3 "^name = \"$crate\"" "$fetch/Cargo.lock" | grep -q "^checksum = \"$checksum\"" || die "$crate has another checksum than $checksum"
}

# replace FILE COUNT FROM TO: replaces whole lines, which must be there so often.
replace() {
	local file=$1 count=$2 from=$3 to=$4 found
	found=$(grep -cxF -- "$from" "$file") || true
	[ "$found" = "$count" ] || die "$(basename "$file") has $found lines '$from', not $count: its version is not the pinned one"
	awk -v from="$from" -v to="$to" '$0 == from { print to; next } { print }' "$file" >"$file.new"
	mv "$file.new" "$file"
}

# take_stack FILE FUNCTION BYTES: lets a function begin with TAKE_STACK(BYTES).
take_stack() {
	local file=$1 name=$2 bytes=$3
	awk -v name="$name" -v bytes="$bytes" '
		index($0, "static") == 1 && index($0, " " name "(") { inside = 1 }
		{ print }
		inside && /;$/ { inside = 0 }
		inside && $0 == "{" { print "    TAKE_STACK(" bytes ");"; inside = 0; found++ }
		END { exit found != 1 }' "$file" >"$file.new" || die "$(basename "$file") has no function $name: its version is not the pinned one"
	mv "$file.new" "$file"
}

# The host bounds the frames of nested calls, which a module cannot see. QuickJS bounds the memory of its C stack, of which some
# recursions take next to nothing. So each recursion takes a part of that stack, and QuickJS gives a RangeError first.
prepare() {
	local from=$cache/vendor/$crate-$version/embed/quickjs to=$1
	[ -d "$from" ] || fetch_crate
	mkdir -p "$to"
	cp "$from"/*.c "$from"/*.h "$to"
	replace "$to/quickjs.c" 1 'static inline bool js_check_stack_overflow(JSRuntime *rt, size_t alloca_size)' \
		'static inline bool stack_overflows(JSRuntime *rt, size_t alloca_size)'
	take_stack "$to/quickjs.c" js_parse_assign_expr2 4096
	take_stack "$to/quickjs.c" js_parse_statement_or_decl 2048
	take_stack "$to/quickjs.c" js_parse_destructuring_element 1024
	take_stack "$to/quickjs.c" js_parse_unary 1024
	replace "$to/quickjs.c" 1 'static JSProxyData *get_proxy_method(JSContext *ctx, JSValue *pmethod,' \
		'#define get_proxy_method(...) (TAKE_STACK(RECURSION), proxy_method(__VA_ARGS__))\nstatic JSProxyData *proxy_method(JSContext *ctx, JSValue *pmethod,'
	replace "$to/libregexp.c" 1 '#include "libregexp.h"' '#include "libregexp.h"\n#define lre_check_stack_overflow(opaque, size) (TAKE_STACK(RECURSION), lre_check_stack_overflow(opaque, size))'
	replace "$to/quickjs.c" 1 '    ctor_fd->source = js_strndup(ctx, (const char *)class_start_ptr, ctor_fd->source_len);' \
		'    ctor_fd->source = keep_source(ctx, (const char *)class_start_ptr, ctor_fd->source_len);'
	replace "$to/quickjs.c" 1 '            fd->source = js_strndup(ctx, (const char *)ptr, fd->source_len);' \
		'            fd->source = keep_source(ctx, (const char *)ptr, fd->source_len);'
	replace "$to/quickjs.c" 1 '        fd->source = js_strndup(ctx, (const char *)ptr, fd->source_len);' \
		'        fd->source = keep_source(ctx, (const char *)ptr, fd->source_len);'
	replace "$to/quickjs.c" 1 '#define JS_ARENA_SIZE              4096' '#define JS_ARENA_SIZE              1024'
	replace "$to/quickjs.c" 1 '    js_free(ctx, ctor_fd->source);' '    drop_source(ctx->rt, ctor_fd->source);'
	replace "$to/quickjs.c" 1 '    js_free(ctx, fd->source);' '    drop_source(ctx->rt, fd->source);'
	replace "$to/quickjs.c" 1 '    js_free_rt(rt, b->source);' '    drop_source(rt, b->source);'
	replace "$to/quickjs.c" 1 'static void js_set_uncatchable_error(JSValueConst val, bool flag);' \
		'static void js_set_uncatchable_error(JSValueConst val, bool flag);\nstatic JSValue async_promise(JSContext *ctx, JSValue *kept);\nstatic JSValue settle_async(JSContext *ctx, JSValueConst promise, bool failed, int argc, JSValueConst *argv);'
	replace "$to/quickjs.c" 1 '    promise = JS_NewPromiseCapability(ctx, s->resolving_funcs);' '    promise = async_promise(ctx, s->resolving_funcs);'
	replace "$to/quickjs.c" 1 '            ret2 = JS_Call(ctx, s->resolving_funcs[1], JS_UNDEFINED,' '            ret2 = settle_async(ctx, s->resolving_funcs[0], true,'
	replace "$to/quickjs.c" 1 '            ret2 = JS_Call(ctx, s->resolving_funcs[0], JS_UNDEFINED,' '            ret2 = settle_async(ctx, s->resolving_funcs[0], false,'
	cp "$here/stack.h" "$to"
	cat "$here/internals.c" >>"$to/quickjs.c"
}

# The package with zig is that of the C and Zig plugins.
python=$("$root/.ci/python/install" guests)/bin/python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prepare "$work/quickjs"

zig=("$python" -m ziglang cc --target=wasm32-wasi
	-mcpu=mvp+bulk_memory+sign_ext+nontrapping_fptoint+mutable_globals+multivalue
	-O2 -DNDEBUG -D_GNU_SOURCE -fno-strict-aliasing -fwrapv -funsigned-char -ffunction-sections -fdata-sections
	"-ffile-prefix-map=$work=." "-ffile-prefix-map=$here=.")
export ZIG_LOCAL_CACHE_DIR=$work/zig
for file in quickjs libregexp libunicode dtoa; do
	(cd "$work/quickjs" && "${zig[@]}" -w -include stack.h -c "$file.c" -o "$work/$file.o")
done
"${zig[@]}" -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -mexec-model=reactor -I"$work/quickjs" \
	"$here"/engine.c "$here"/cbor.c "$here"/globals.c "$here"/sourcemap.c "$work"/{quickjs,libregexp,libunicode,dtoa}.o -lm -o "$work/engine.wasm" \
	-Wl,--export=user_bundle -Wl,-z,stack-size=1048576 -Wl,--gc-sections -Wl,-s
cp "$work/engine.wasm" "$out"
