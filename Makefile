# What people and CI type. CI calls only these targets, so what passes here passes there.
#
# Cold, `make test` builds everything once, with the linter as the compiler (dev): the tests, and the binary that the process tests
# and the demos run. It judges more than a release does: overflows, and the promises of docs/internals. `make smoke` plays the same
# demos with the release.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.NOTPARALLEL:

CARGO ?= cargo
# Never resolve anew: what is tested is what Cargo.lock says.
LOCKED := --locked
# What `smoke`, `strangers` and `skew` run. One build of it, by `release`.
BINARY := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/release/allclear
# The demos take 10 to 40 seconds on a quiet machine. After this they hang.
DEMO_SECONDS_MAX ?= 120
# More threads than cores: most tests wait for a peer. With six, tests that measure memory and time begin to disturb each other.
TEST_THREADS ?= 4
RUN_TESTS = RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test $(LOCKED) --workspace --no-fail-fast -- --quiet
# Clippy's driver compiles what it checks. Tests that are built by it need no second build of every dependency for a check alone,
# which is a quarter of a cold run. The arguments are those of `cargo clippy -- -D warnings`. It optimizes less, and that is all.
LINTED := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings
# What test-setup got, or else the one in PATH.
HELM = $(or $(wildcard .venv/bin/helm),helm)
# How long `fuzz` runs; `make test` does it for ten seconds.
FUZZ_SECONDS ?= 600
# How many seeds `sim` runs, or which.
SEEDS ?= 1000

.PHONY: help
help: ## Lists what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Says which part of `test` begins: a newcomer must see that it goes on, and with what.
stage = @printf 'make test, %s: %s\n' '$(1)' '$(2)'

.PHONY: test
test: ## Everything that must pass before a merge
	$(call stage,1 of 5,gets what the tests need beside Rust)
	@$(MAKE) --no-print-directory test-setup
	$(call stage,2 of 5,checks the formatting)
	@$(MAKE) --no-print-directory fmt
	$(call stage,3 of 5,builds and checks the tests; most of the time when there is no target yet)
	@$(MAKE) --no-print-directory linted
	$(call stage,4 of 5,plays four demos side by side for $(DEMO_SECONDS_MAX) s at most)
	$(call play,$(patsubst %/release/allclear,%/debug/allclear,$(BINARY)))
	$(call stage,5 of 5,runs the tests: cargo names each program and each test is a dot)
	$(LINTED) $(RUN_TESTS)

# Not quiet: cargo names each crate that it builds, and in a terminal how many of how many.
.PHONY: linted
linted: ## Builds the tests and checks everything meanwhile, as `lint` does
	$(LINTED) $(CARGO) test $(LOCKED) --workspace --all-targets --no-run

.PHONY: test-setup
test-setup: ## Gets what the tests need beside Rust: moto, dulwich, helm, kubectl, the API's schemas, git, sshd, redis-server, varnish and nginx
	@scripts/test-setup.sh

.PHONY: fmt
fmt: ## Checks the formatting
	$(CARGO) fmt --all --check

.PHONY: lint
lint: ## Runs clippy; a warning is an error
	$(CARGO) clippy $(LOCKED) --quiet --workspace --all-targets -- -D warnings

.PHONY: release
release: ## Builds target/release/allclear
	$(CARGO) build $(LOCKED) --quiet --release

# Plays the demos side by side, each with a bound on its time and without pauses for readers: $(call play,BINARY)
define play
@play() { timeout --kill-after=10 $(DEMO_SECONDS_MAX) $(1) demo --fast "$$@"; }; \
told=$$(mktemp --directory); trap 'rm -r "$$told"' EXIT; \
play --clusters 3 > "$$told/group" 2>&1 & group=$$!; \
play pipeline > "$$told/pipeline" 2>&1 & pipeline=$$!; \
play repo > "$$told/repo" 2>&1 & repo=$$!; \
play && alone=0 || alone=$$?; \
wait "$$group" && clusters=0 || clusters=$$?; wait "$$pipeline" && promoted=0 || promoted=$$?; \
wait "$$repo" && ran=0 || ran=$$?; cat "$$told"/*; test "$$alone $$clusters $$promoted $$ran" = '0 0 0 0'
endef

.PHONY: smoke
smoke: release ## Runs the demos side by side, each with a bound on its time
	$(call play,$(BINARY))

.PHONY: test-only
test-only: test-setup ## Runs all tests, without the checks
	$(CARGO) test $(LOCKED) --quiet --workspace --no-run
	$(RUN_TESTS)

.PHONY: demo
demo: release ## Shows one rollout from end to end on this machine; no cluster and no AWS account needed
	$(BINARY) demo

.PHONY: newcomer
newcomer: test-setup ## Follows README and docs/quick-start.md in a fresh clone, and prints how long each command took; 20 minutes
	tests/newcomer.sh

.PHONY: scale
scale: ## Prints what the whole process costs in a cluster of 10,000 Deployments, beside the aims; takes minutes
	$(CARGO) bench $(LOCKED) --quiet --bench scale

.PHONY: model-deep
model-deep: ## Searches larger groups, some to the end and others in large part; an hour or two
	$(CARGO) test $(LOCKED) --quiet --package allclear-model --test model -- --ignored deep --nocapture --test-threads 1

.PHONY: model
model: ## Searches the models as `test` does, and prints how many states each has; minutes
	$(CARGO) test $(LOCKED) --quiet --package allclear-model --test model -- --nocapture

.PHONY: mutants
mutants: ## Breaks the domain in each way of tests/mutants.txt and names what no test catches; hours (MUTANTS=3..8, or words of a title, for some)
	@scripts/mutants.py

.PHONY: faults
faults: test-setup ## Runs the whole table of faults for groups and prints what came of each; takes minutes (FAULTS=K6,R2 for some)
	$(CARGO) test $(LOCKED) --quiet --test process -- --ignored faults_table --nocapture

.PHONY: kills
kills: test-setup ## Kills the program at each of its requests as `test` does, and prints the points; takes minutes
	$(CARGO) test $(LOCKED) --quiet --test process -- --nocapture killed_at_any killed_in_the_middle

.PHONY: faults-page
faults-page: ## Fills the last column of docs/internals/faults.md, which the tests make
	$(CARGO) test $(LOCKED) --quiet --test tidy -- --ignored make_the_page_of_faults

.PHONY: house
house: ## Prints how large the house is, beside what it was and what it should be
	@scripts/house.sh

.PHONY: strangers
strangers: test-setup release ## Attacks it as tenants, senders and peers could, and prints each figure beside its aim; takes minutes
	ALLCLEAR_BIN=$(BINARY) $(CARGO) test $(LOCKED) --quiet --workspace --no-fail-fast -- --include-ignored --nocapture --test-threads 1 strangers

.PHONY: skew
skew: test-setup release ## Runs this release beside an earlier one, whose binary ALLCLEAR_OLD_BIN names
	@test -x "$(ALLCLEAR_OLD_BIN)" || { echo 'skew: set ALLCLEAR_OLD_BIN to the binary of an earlier release, with a ledger of the same layout' >&2; exit 2; }
	@echo "skew: $(BINARY) beside $$("$(ALLCLEAR_OLD_BIN)" --version) of $(ALLCLEAR_OLD_BIN)"
	ALLCLEAR_BIN=$(BINARY) $(CARGO) test $(LOCKED) --quiet --test process -- --ignored group::skew --nocapture

.PHONY: spec
spec: ## Searches the hand-written model of group agreement and its mutants with Spin; needs spin and gcc, takes minutes
	@scripts/spec.sh

.PHONY: sim
sim: ## Runs the simulations of chaos, alone and in groups, for many seeds; SEEDS=10000, or SEEDS=17..18 to repeat number 17
	ALLCLEAR_SIM_SEEDS=$(SEEDS) $(CARGO) test $(LOCKED) --quiet --test simulation -- --nocapture chaos::whatever

.PHONY: fuzz
fuzz: ## Gives every decoder of outside bytes hostile inputs for FUZZ_SECONDS; guided by coverage: cargo fuzz run NAME
	ALLCLEAR_FUZZ_SEED=$${ALLCLEAR_FUZZ_SEED:-any} ALLCLEAR_FUZZ_SECONDS=$(FUZZ_SECONDS) $(CARGO) test $(LOCKED) --quiet --package allclear-decoders -- --nocapture

.PHONY: reliability
reliability: ## Renews docs/reliability.md: runs what fits into 30 minutes, and says which figures are stale (ONLY=NAME for one)
	@scripts/reliability.py $(if $(ONLY),--only $(ONLY))

.PHONY: latency
latency: ## Prints how soon a purge follows the last fact, alone and in a group of three, beside the aims
	$(CARGO) bench $(LOCKED) --quiet --bench latency

.PHONY: edge
edge: test-setup ## Prints how soon after a purge the look knows how the edge is, on two tiers of real Varnish; takes minutes
	$(CARGO) test $(LOCKED) --quiet --test adapter -- --ignored edge_in_numbers --nocapture

.PHONY: bench
bench: ## Measures the hot paths: decoding, deciding, matching, purging
	$(CARGO) bench $(LOCKED) --bench decode --bench rollout --bench distribution --bench purge

.PHONY: deny
deny: ## Checks licences, sources, banned crates and, where their database can be had, advisories; needs cargo-deny
	@if ! command -v cargo-deny >/dev/null; then \
	echo 'deny: cargo-deny is not installed, nothing was checked (cargo install cargo-deny)'; \
	echo 'deny: advisories: not checked'; exit 0; fi; \
	$(CARGO) deny --locked check bans licenses sources; \
	if $(CARGO) deny --locked fetch >/dev/null 2>&1; then $(CARGO) deny --locked check --disable-fetch advisories; \
	else echo 'deny: advisories: not checked, because their database and the index of crates cannot be fetched here'; fi

.PHONY: alerts
alerts: ## Checks the alerts and the dashboard with promtool, and the metrics of a running program; needs promtool
	@scripts/alerts.sh
	@if command -v promtool >/dev/null; then \
	$(CARGO) test $(LOCKED) --quiet --test process -- --ignored alerts::promtool; fi

.PHONY: page
page: ## Looks at the status page in headless Chromium: contrast, names, keyboard, policy, narrow and wide; needs chromium and npm
	$(LINTED) scripts/page.sh

.PHONY: screenshots
screenshots: page ## The same; the pictures are in target/screenshots

.PHONY: mcp-conformance
mcp-conformance: ## Holds allclear mcp to the conformance suite of its protocol, where npm is installed
	$(CARGO) build $(LOCKED)
	scripts/mcp-conformance.sh

.PHONY: manifests
manifests: ## Renders the manifests of deploy/, as kubectl apply -k would
	kubectl kustomize deploy/base

.PHONY: chart
chart: test-setup ## Copies what the chart shares with the kustomize trees, checks and compares what is rendered, and packs target/chart
	scripts/chart-files.sh
	$(CARGO) test $(LOCKED) --quiet --test deploy
	$(HELM) package --destination target/chart deploy/chart/allclear

.PHONY: sbom
sbom: ## Writes what the released binary is made of to target/sbom, in CycloneDX, and the licences of that
	scripts/sbom.py

.PHONY: reproducible
reproducible: ## Builds the binary of the image in two folders and compares their bytes; 20 minutes on two cores
	scripts/reproducible.sh
