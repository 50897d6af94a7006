# `make help` lists the targets. Needs GNU make and bash; scripts/setup.sh looks after the rest.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help
.NOTPARALLEL:

CARGO ?= cargo
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
# Tools that setup.sh just installed are found without a new login shell.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

# The packages whose binaries are shipped, built without failpoints.
SHIPPED := -p hive-core -p hive-harness -p hive-engine -p hive-bash -p hive-rehearsal
# Clippy, tests and docs all build the whole workspace with the same features and profile, so that
# cargo compiles dependencies (and the bundled SQLite) once for all of them.
CHECKED := --workspace --features hive-core/failpoints,hive-core/mcp-fixtures,hive-store/failpoints

# Where setup.sh puts the real engine for the tests. It is named to them, so that a test that needs
# it fails without it instead of being left out.
CLAUDE_CPU := $(patsubst aarch64,arm64,$(patsubst x86_64,x64,$(shell uname -m)))
CLAUDE_BIN := $(abspath $(TARGET_DIR))/claude/node_modules/@anthropic-ai/claude-code-linux-$(CLAUDE_CPU)/claude

# A continuous-integration run must not change Cargo.lock, and never builds twice in one place.
ifdef CI
LOCKED := --locked
export CARGO_INCREMENTAL := 0
endif

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: up
up: ## Build and start a hive in the foreground; Ctrl-C stops it (ROOT=dir PORT=n)
	@scripts/setup.sh up
	@$(MAKE) --no-print-directory web
	$(CARGO) build --release $(LOCKED) $(SHIPPED) --bins
	@exec $(TARGET_DIR)/release/hive-c0re $${ROOT:+--root "$$ROOT"} up $${PORT:+--port "$$PORT"}

.PHONY: build
build: ## Build the page and all release binaries
	@scripts/setup.sh build
	@$(MAKE) --no-print-directory web
	$(CARGO) build --release $(LOCKED) $(SHIPPED) --bins

.PHONY: test
test: ## Run everything that must pass: lints, tests, documentation tests
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory web
	cd web && npm run --silent check && npm run --silent test && npm run --silent budget
# The tests start the daemon's own binary; --all-targets builds it with the features that they use.
	$(CARGO) build $(LOCKED) $(CHECKED) --all-targets
	$(CARGO) test --quiet $(LOCKED) $(CHECKED) --doc
	CLAUDE_BIN='$(CLAUDE_BIN)' HIVE_REQUIRE_CLAUDE=1 $(CARGO) nextest run $(LOCKED) $(CHECKED)
	@$(MAKE) --no-print-directory browser

# The daemon is the one that was built for the other tests.
.PHONY: browser
browser: ## Run the tests of the pages in a real browser (after `make test` or a build)
	cd web && CLAUDE_BIN='$(CLAUDE_BIN)' HIVE_BIN_DIR='$(abspath $(TARGET_DIR))/debug' npm run --silent browser

# Without Node the daemon is built all the same, with a page that says how to build the real one. What
# is built already stays as it is: the daemon, which embeds it, would be compiled again.
.PHONY: web
web: ## Build the page that the daemon embeds (needs Node 20.19 or newer)
	@if command -v npm >/dev/null && node -e 'const [a,b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)'; then \
		cd web; \
		if ! [ node_modules -nt package-lock.json ]; then \
			npm ci --no-audit --no-fund --loglevel=error; \
			touch node_modules; \
		fi; \
		if ! [ dist/.built -nt package-lock.json ] || \
			[ -n "$$(find src index.html package.json tsconfig.json vite.config.ts -newer dist/.built -print -quit)" ]; then \
			npm run --silent build -- --logLevel warn; \
			touch dist/.built; \
		fi; \
	else \
		echo 'web: skipped, Node 20.19 or newer is not here; the command line does everything the page does'; \
	fi

.PHONY: lint
lint: ## Check format, lints, scripts, documentation links and dependencies
	@scripts/setup.sh lint
	$(CARGO) fmt --all --check
	shellcheck .ci/run $$(find bench crates scripts web/tests -name '*.sh')
	$(CARGO) clippy $(LOCKED) $(CHECKED) --all-targets -- -D warnings
# Our docs are for contributors, who see private items too, so links to those are fine.
	RUSTDOCFLAGS='-D warnings -A rustdoc::private-intra-doc-links' $(CARGO) doc --quiet $(LOCKED) $(CHECKED) \
		--no-deps --document-private-items
	@if command -v cargo-deny >/dev/null; then \
		$(CARGO) deny check bans licenses sources; \
	else \
		echo 'deny: cargo-deny is not installed (cargo install --locked cargo-deny): versions only'; \
		scripts/one-version.sh $(LOCKED); \
	fi

.PHONY: deny
deny: ## Check dependencies: licences, duplicates, sources, known advisories (needs cargo-deny)
	@command -v cargo-deny >/dev/null || \
		{ echo 'cargo-deny is not installed: cargo install --locked cargo-deny' >&2; exit 1; }
	$(CARGO) deny check

.PHONY: bench
bench: ## Compare with Redis, PostgreSQL, the disk and other engines (ARGS='...' goes to the bench)
	@scripts/setup.sh bench
	$(CARGO) build --release $(LOCKED) -p hive-core -p hive-harness -p hive-engine -p hive-testkit \
		--bin hive-c0re --bin hive --bin hive-engine --bin fake-engine
	$(CARGO) run --release $(LOCKED) -p bench -- $(ARGS)
	@$(MAKE) --no-print-directory pagebench

.PHONY: pagebench
pagebench: ## Measure the pages in a real browser (the last part of `make bench`)
	@scripts/setup.sh pages
	@$(MAKE) --no-print-directory web
	$(CARGO) build --release $(LOCKED) -p hive-core --bin hive-c0re
	cd web && HIVE_BIN_DIR='$(abspath $(TARGET_DIR))/release' npm run --silent bench

# Its build has a directory of its own, so that a binary with failpoints never lies where the shipped
# one does. It is a release build, which gets through many more cases, with the checks of a debug build.
.PHONY: soak
soak: export CARGO_TARGET_DIR := $(abspath $(TARGET_DIR))/soak
soak: export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS := true
soak: export CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS := true
soak: export PROPTEST_CASES := $(or $(PROPTEST_CASES),20000)
soak: ## Run the long campaigns (ARGS='...' goes to the crashes, TURN_ARGS to the turns, TALK_ARGS to the conversation)
	@scripts/setup.sh soak
	$(CARGO) build --release $(LOCKED) --bins -p hive-core -p hive-harness -p hive-testkit --features hive-core/failpoints
	'$(CARGO_TARGET_DIR)/release/soak' $(ARGS)
	'$(CARGO_TARGET_DIR)/release/soak-turns' $(TURN_ARGS)
	'$(CARGO_TARGET_DIR)/release/soak-talk' $(TALK_ARGS)
	$(CARGO) nextest run --cargo-profile release $(LOCKED) --profile soak --features hive-store/failpoints \
		-p hive-wire -p hive-store -p hive-engine -p hive-providers -p hive-core -p hive-harness -p hive-rehearsal \
		-E 'test(prop_) | test(fuzz_)'

.PHONY: clean
clean: ## Remove what was built
	$(CARGO) clean
