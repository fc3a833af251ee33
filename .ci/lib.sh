# shellcheck shell=bash
# What the scripts beside this file share. The root module and the guests' ones
# (SDK, example plugins) are built apart: no build of one may need the other.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
export GOWORK=off

say() { printf 'weft: %s\n' "$*"; }

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
