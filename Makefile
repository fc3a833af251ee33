# `make help` lists the targets. `make run` needs Go alone; `make test` installs
# the guests' compilers (.ci/toolchain) and a Python client to test with
# (.ci/python), `make check` builds its tools (.ci/tools).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.ONESHELL:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Settings: make run ADDR=127.0.0.1:9000 DATA=/tmp/weft
ADDR = 127.0.0.1:8080
DATA = ./data
JOBS = $(shell nproc 2>/dev/null || echo 2)
TESTFLAGS =
BENCH = .
BENCHFLAGS =
KILLS = 1000
SEEDS = 100000
CHAOS = 5m
FAULTS = 100
FUZZTIME = 60s

CACHE := $(or $(XDG_CACHE_HOME),$(if $(HOME),$(HOME)/.cache))
TOOLCHAIN := $(or $(WEFT_TOOLCHAIN),$(if $(CACHE),$(CACHE)/weft-toolchain))
VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# Each module is built by its own go.mod, which no build may change; the version
# comes from VERSION, so that a copy without git builds as well. Without paths in them,
# compiled packages are the same in each checkout and for each tool (test, vet, linters):
# the go command compiles each of them once and takes it from its cache afterwards.
export GOWORK := off
export GOFLAGS := $(strip $(filter-out -mod=% -buildvcs=% -trimpath,$(GOFLAGS)) -mod=readonly -buildvcs=false -trimpath)
export PATH := $(if $(TOOLCHAIN),$(TOOLCHAIN)/bin:)$(PATH)
# Where tests of the real server find it and the example plugins.
export WEFT_BIN := $(CURDIR)/bin/weft
export WEFT_PLUGINS := $(CURDIR)/build/plugins

# A sub-make that uses all cores, unless make has a -j.
parallel = $(MAKE) $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS) --output-sync=target)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: bin/weft build/plugins/wordcount-go.wasm ## Serve the example workflows and count the words of real text (ADDR, DATA); Ctrl-C ends it
	@{ nice -n 19 $(parallel) plugins-go >&2 || echo 'weft: not all examples were built; the server goes on' >&2; } |
		bin/weft serve --addr '$(ADDR)' --data '$(DATA)' --examples --demo --examples-later

.PHONY: test
test: test-plugins ## Install the guests' compilers and a Python client once, build all plugins, run the tests that a change needs
	@.ci/test $(TESTFLAGS)

.PHONY: test-quick
test-quick: need-go ## Test the host with Go alone, in under two minutes
	@.ci/test-quick $(TESTFLAGS)

.PHONY: soak
soak: test-plugins ## Run all tests with all their seeds, modules, histories and kills (hours: nightly and before a release)
	@WEFT_SOAK=1 .ci/test $(TESTFLAGS)
	@$(MAKE) crash chaos simulate fuzz

.PHONY: starved
starved: test-plugins ## Run the host's tests with the cores taken away: beside busy loops, and with 40 % of the CPU time (TESTFLAGS=-short: the quick tests)
	@TESTFLAGS='$(TESTFLAGS)' .ci/starved

.PHONY: fuzz
fuzz: test-plugins ## Run each fuzz target for a while (FUZZTIME=60s)
	@.ci/fuzz '$(FUZZTIME)'

# What tests need, with the guests' compilers and all built plugins.
.PHONY: test-plugins
test-plugins: toolchain python node postgres console-tools engine-py js-tests build
	@$(parallel) plugins-go plugins-tinygo plugins-rust plugins-ts plugins-py
	@ZIG="$$(.ci/python/install guests)/bin/python -m ziglang" $(parallel) plugins-c plugins-zig

.PHONY: check
check: need-go ## Formatting, vet, linters, tidy go.mod files, shell scripts
	@.ci/check

.PHONY: build
build: bin/weft ## Build bin/weft

.PHONY: plugins
plugins: need-go ## Build every example plugin in every language whose compiler is there
	@targets='plugins-go plugins-ts'
	missing() { printf 'weft: no %s, so the %s builds are left out (make toolchain installs it)\n' "$$1" "$$2"; }
	if command -v tinygo >/dev/null; then targets+=' plugins-tinygo'; else missing TinyGo '*-tinygo.wasm'; fi
	if [ -z '$(rust_plugins)' ]; then :
	elif $(find_cargo) >/dev/null; then targets+=' plugins-rust'; else missing 'Rust for wasm32' '*-rust.wasm'; fi
	if command -v zig >/dev/null; then targets+=' plugins-c plugins-zig'; fi
	if .ci/pyengine there; then targets+=' plugins-py'; else echo 'weft: no engine for Python, so the *-py.wasm builds are left out (make engines builds it)'; fi
	$(parallel) $$targets

.PHONY: fmt
fmt: need-go ## Format all Go files, and the Rust ones if there is a cargo
	@gofmt -l -w abi host cmd sdk-guest plugins testdata
	cargo=$$(command -v wasm32-cargo || command -v cargo) || exit 0
	for crate in sdk-guest/rust $(rust_plugins:%=plugins/%-rust); do (cd "$$crate" && "$$cargo" fmt --all); done

.PHONY: bench
bench: toolchain build ## Run the benchmarks (BENCH=Kernels: only those; BENCHFLAGS=-count=6 for benchstat)
	@$(parallel) plugins-go plugins-tinygo plugins-rust plugins-ts
	@BENCH='$(BENCH)' .ci/bench $(BENCHFLAGS)

.PHONY: crash
crash: toolchain postgres build ## Kill a server under load, again and again (KILLS=1000 times), on SQLite and on PostgreSQL, which is killed too, and check what its clients have seen
	@$(parallel) plugins-tinygo
	@WEFT_KILLS='$(KILLS)' go test ./host/hosttest -run '^TestStorm(OnPostgres)?$$' -count=1 -timeout 12h -v

.PHONY: chaos
chaos: toolchain postgres build ## Play faults of nodes (FAULTS=100), then of networks too (for CHAOS=5m), and of PostgreSQL on a cluster under load, and check what its clients have seen
	@$(parallel) plugins-go plugins-tinygo
	@WEFT_FAULTS='$(FAULTS)' WEFT_CHAOS='$(CHAOS)' go test ./host/hosttest -run '^Test(StormOnCluster|Chaos)$$' -count=1 -timeout 12h -v

.PHONY: simulate
simulate: need-go ## Play the simulations of the scheduler and of a cluster on and on (SEEDS=100000 of them), from one seed to the next
	@WEFT_SEEDS='$(SEEDS)' go test ./host/scheduler ./host/cluster -run '^TestSimulation$$' -count=1 -timeout 12h -v

.PHONY: toolchain
toolchain: need-go ## Install the guests' compilers (Debian; root or sudo), once
	@if ! command -v apt-get >/dev/null && command -v tinygo >/dev/null; then
		echo 'weft: not a Debian system, using the compilers on PATH'
	else
		.ci/toolchain/install
	fi

.PHONY: postgres
postgres: ## Install a PostgreSQL server for tests (Debian; root or sudo), once; none is started
	@.ci/postgres install >/dev/null

.PHONY: python
python: ## Install the Python packages that tests use, once, outside the checkout (needs PyPI)
	@.ci/python/install >/dev/null

.PHONY: node
node: ## Install the npm packages that tests use, once, outside the checkout (needs npm's registry; Debian's Node if there is none)
	@.ci/node/install >/dev/null

.PHONY: engines
engines: engine-py ## Build the engines for JavaScript (checked in) and Python (kept outside the checkout) from their pinned sources
	@mkdir -p build
	sdk-guest/js/engine/build.sh build/engine.wasm
	gzip -9nc build/engine.wasm >sdk-guest/js/engine/engine.wasm.gz

.PHONY: engine-py
engine-py: ## Build the engine for Python, unless it is there (needs python3.11, and a network once); 'make build' embeds it
	@.ci/pyengine build

.PHONY: js-tests
js-tests: toolchain ## Fetch tests of JavaScript and of URLs that others have written, once, outside the checkout (needs crates.io)
	@.ci/jstests

.PHONY: console
console: ## Build the web console from its sources in host/console/web (needs Node, or installs it, and a network once)
	@.ci/console install
	.ci/console build

.PHONY: console-pictures
console-pictures: console-tools build plugins ## Make the pictures of docs/console.md anew
	.ci/console pictures

.PHONY: console-tools
console-tools: ## Install what builds and tests the web console (Debian; root or sudo), once
	@.ci/console install

.PHONY: release
release: need-go ## Before a release is tagged: pack the SDK that programs made by 'go install' put into projects
	@.ci/pack-sdk cmd/weft/scaffold/packed/release.tar.gz

.PHONY: clean
clean: ## Remove what was built; ./data stays
	@rm -rf bin build

.PHONY: need-go
need-go:
	@.ci/need-go

.PHONY: FORCE
FORCE:

# The go command knows best what has changed.
bin/weft: FORCE | need-go
	@echo 'weft: building bin/weft'
	.ci/pack-sdk cmd/weft/scaffold/packed/go.tar.gz
	.ci/pyengine embed
	CGO_ENABLED=0 go build -trimpath -ldflags='-X main.version=$(VERSION)' -o $@ ./cmd/weft
	echo "weft: built $@ in $$SECONDS s"

# ---- example plugins: plugins/NAME -> build/plugins/NAME-LANG.wasm ----------

go_plugins := $(patsubst plugins/%/go.mod,%,$(wildcard plugins/*/go.mod))
rust_plugins := $(patsubst plugins/%-rust/Cargo.toml,%,$(wildcard plugins/*-rust/Cargo.toml))
# Folders are listed too: a file that is gone has changed its folder.
sources := $(shell find plugins sdk-guest \( -name target -o -name build -o -name testdata -o -name wefttest \) -prune -o \
	! -name '*_test.go' ! -name '*.md' -print 2>/dev/null)
ts_plugins := $(patsubst plugins/%/main.ts,%,$(wildcard plugins/*-ts/main.ts))
py_plugins := $(patsubst plugins/%/main.py,%,$(wildcard plugins/*-py/main.py))
sources_of = $(filter $(1) $(1)/%,$(sources))

GO_GUEST = GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 go build -buildmode=c-shared -trimpath -ldflags='-s -w'
TINYGO_GUEST = tinygo build -target=wasip1 -buildmode=c-shared -scheduler=none -gc=leaking -no-debug
# Prints a cargo that has a std for wasm32: the toolchain's, else the user's own.
find_cargo = { command -v wasm32-cargo || \
	{ [ -d "$$(rustc --print target-libdir --target wasm32-unknown-unknown 2>/dev/null)" ] && command -v cargo; }; }

# Zig compiles C as well, with clang's command line.
ZIG ?= zig
C_GUEST = $(ZIG) cc --target=wasm32-freestanding -mcpu=mvp+bulk_memory -Os -nostdlib -Wl,--no-entry -s \
	-Wall -Wextra -Werror -Wno-unused-function -I sdk-guest/c
ZIG_GUEST = $(ZIG) build-exe -target wasm32-freestanding -O ReleaseSmall -fno-entry -rdynamic

# A plugin that is gone must not be served from what was built of it.
remove_stale = @rm -f $(filter-out $^,$(wildcard build/plugins/*-$(1).wasm))

# The flows of examples lie beside their plugins.
flows := $(patsubst plugins/%/flow.json,build/plugins/%.flow.json,$(wildcard plugins/*/flow.json))
build/plugins/%.flow.json: plugins/%/flow.json
	@mkdir -p build/plugins
	cp $< $@

.PHONY: plugins-go plugins-tinygo plugins-rust plugins-ts plugins-py plugins-c plugins-zig
plugins-go: $(go_plugins:%=build/plugins/%-go.wasm) $(flows) ## Build the example plugins with Go alone
	$(call remove_stale,go)
	@rm -f $(filter-out $(flows),$(wildcard build/plugins/*.flow.json))
plugins-tinygo: $(go_plugins:%=build/plugins/%-tinygo.wasm) $(flows) ## Build them with TinyGo
	$(call remove_stale,tinygo)
plugins-rust: $(rust_plugins:%=build/plugins/%-rust.wasm) ## Build those written in Rust
	$(call remove_stale,rust)
plugins-ts: $(ts_plugins:%=build/plugins/%.wasm) ## Build those written in TypeScript, with weft alone
	$(call remove_stale,ts)
plugins-py: $(py_plugins:%=build/plugins/%.wasm) ## Build those written in Python, with a weft that has the engine ('make engines build')
	$(call remove_stale,py)
plugins-c: $(patsubst plugins/%,build/plugins/%.wasm,$(wildcard plugins/*-c)) ## Build those written in C (needs zig, or ZIG='python3 -m ziglang')
	$(call remove_stale,c)
plugins-zig: $(patsubst plugins/%,build/plugins/%.wasm,$(wildcard plugins/*-zig)) ## Build those written in Zig
	$(call remove_stale,zig)

build/plugins/%-c.wasm: plugins/%-c/*.c sdk-guest/c/weft.h build/stamp-zig
	@export ZIG_LOCAL_CACHE_DIR=build/zig
	.ci/built $@ $^ -- $(C_GUEST) -o $@ plugins/$*-c/*.c

build/plugins/%-zig.wasm: plugins/%-zig/*.zig sdk-guest/zig/weft.zig build/stamp-zig
	@export ZIG_LOCAL_CACHE_DIR=build/zig
	.ci/built $@ $^ -- $(ZIG_GUEST) --dep weft -Mroot=plugins/$*-zig/$*.zig -Mweft=sdk-guest/zig/weft.zig -femit-bin=$@

define go_plugin
build/plugins/$(1)-go.wasm: $(call sources_of,plugins/$(1)) $(call sources_of,sdk-guest/go) build/stamp-go | need-go
	@.ci/built $$@ $$^ -- env -C plugins/$(1) $$(GO_GUEST) -o '$(CURDIR)/$$@' .

build/plugins/$(1)-tinygo.wasm: $(call sources_of,plugins/$(1)) $(call sources_of,sdk-guest/go) build/stamp-tinygo | need-go
	@.ci/built $$@ $$^ -- env -C plugins/$(1) $$(TINYGO_GUEST) $$(file <plugins/$(1)/tinygo.flags) -o '$(CURDIR)/$$@' .
endef
$(foreach name,$(go_plugins),$(eval $(call go_plugin,$(name))))

define rust_plugin
build/plugins/$(1)-rust.wasm: $(call sources_of,plugins/$(1)-rust) $(call sources_of,sdk-guest/rust) build/stamp-rust
	@cargo=$$$$($$(find_cargo)) || { echo 'weft: no Rust for wasm32 (make toolchain installs it)' >&2; exit 1; }
	.ci/built $$@ $$^ -- .ci/crate "$$$$cargo" plugins/$(1)-rust $$@
endef
$(foreach name,$(rust_plugins),$(eval $(call rust_plugin,$(name))))

# weft is their compiler.
define script_plugin
build/plugins/$(1).wasm: $(call sources_of,plugins/$(1)) $(filter-out sdk-guest/py/engine/built/%,$(call sources_of,sdk-guest/$(2))) $(wildcard cmd/weft/guest/script/*.go) | bin/weft
	@mkdir -p build/plugins
	.ci/built $$@ $$^ -- bash -c 'bin/weft build "$$$$0" >/dev/null && mv "$$$$0/build/$(1).wasm" "$$$$1" && rmdir "$$$$0/build"' plugins/$(1) $$@
endef
$(foreach name,$(ts_plugins),$(eval $(call script_plugin,$(name),js)))
$(foreach name,$(py_plugins),$(eval $(call script_plugin,$(name),py)))

# A stamp changes when its compiler or the way to call it does, so that all that
# it built is built anew.
build/stamp-go: stamp = $$(go env GOVERSION) $(GO_GUEST)
build/stamp-tinygo: stamp = $$(tinygo version) $(TINYGO_GUEST)
build/stamp-rust: stamp = $$(env -u MAKEFLAGS -u MFLAGS $$($(find_cargo)) --version)
build/stamp-zig: stamp = $$($(ZIG) version) $(C_GUEST) $(ZIG_GUEST)
build/stamp-%: FORCE | need-go
	@mkdir -p build/plugins
	new="$(stamp)"
	[ "$$new" = "$$(cat $@ 2>/dev/null)" ] || printf '%s\n' "$$new" >$@
