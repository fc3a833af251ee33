# shellcheck shell=bash
# What the scripts beside this file share. The root module and the guests' ones
# (SDK, example plugins) are built apart: no build of one may need the other.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
export GOWORK=off

say() { printf 'weft: %s\n' "$*"; }

# cpu_seconds FILE prints the CPU seconds of a shell and of all programs that it has run.
# The file is what `times` has printed in that shell: every other shell has its own.
cpu_seconds() {
	awk '{ for (i = 1; i <= 2; i++) { split($i, part, /[ms]/); sum += part[1] * 60 + part[2] } } END { printf "%.0f\n", sum }' "$1"
}

# guest_modules lists the folders of the guests' modules, with a leading "./".
guest_modules() {
	find ./sdk-guest ./plugins ./testdata/plugins -name testdata -prune -o -name go.mod -printf '%h\n' | sort
}

# guest_workspace FILE writes a go.work of all guest modules, so that one command
# sees them together. It lies outside the checkout, where no build finds it.
guest_workspace() {
	local dir
	printf 'go %s\n' "$(sed -n 's/^go //p' go.mod)" >"$1"
	guest_modules | while read -r dir; do printf 'use "%s/%s"\n' "$PWD" "${dir#./}"; done >>"$1"
}

# rust_crates lists the folders of the Rust workspaces: the SDK, the example
# plugins and what tests build.
rust_crates() {
	find ./sdk-guest ./plugins -name target -prune -o -name Cargo.lock -printf '%h\n' | sort
}

# rust_cargo prints a cargo for guests: the toolchain's, else the user's own.
rust_cargo() { command -v wasm32-cargo || command -v cargo; }

# cargo_in DIR ARGUMENT...: runs cargo there, for this machine and not for
# WebAssembly, with a target folder that all share and the versions of Cargo.lock.
cargo_in() {
	local dir=$1 cargo rustc machine
	shift
	cargo=$(rust_cargo) || return
	rustc=$(command -v wasm32-rustc || command -v rustc) || return
	machine=$("$rustc" -vV | sed -n 's/^host: //p')
	(cd "$dir" && env -u MAKEFLAGS -u MFLAGS CARGO_TARGET_DIR="$OLDPWD/build/cargo" CARGO_BUILD_TARGET="$machine" "$cargo" "$@" </dev/null)
}
