# make demo    measure every VPN once and write demo-result/report.html
# make test    everything that must hold: lint, unit tests, tests in real labs
# make test-matrix  every suite, option and topology of every VPN on all images; takes hours
# make lint    ruff, pyright, rustfmt and clippy
# make format  put the sources into shape
# make image   the Debian tree that labs run on, if it is missing
# make clean   delete what was made here; images stay (tunnelbench image remove)

.DEFAULT_GOAL := demo
.NOTPARALLEL:
.PHONY: demo test test-matrix lint format image clean host lint-host test-host

ENVIRONMENT := .venv
BIN := $(ENVIRONMENT)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

SOURCES := pyproject.toml hatch_build.py README.md LICENSE $(wildcard Cargo.* .cargo/*) \
	$(shell find crates src -type f -not -path '*/__pycache__/*' -not -path 'src/tunnelbench/bin/*')

demo: image
	rm -rf demo-result
	$(BIN)/tunnelbench run quick --out demo-result
	@echo "The report: file://$(CURDIR)/demo-result/report.html"

test: test-host lint image
	RUST_TEST_THREADS=4 cargo test --locked --quiet
	$(BIN)/pytest --numprocesses 2 --dist loadfile

test-matrix: $(ENVIRONMENT)/development image
	$(BIN)/tunnelbench prove --matrix --at-once 4 --image bullseye --image bookworm --image trixie \
		--out docs/reference/vpns.json || true
	$(BIN)/python scripts/make-reference

lint: $(ENVIRONMENT)/development lint-host
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	cargo fmt --check
	cargo clippy --locked --quiet --all-targets -- -D warnings

format: $(ENVIRONMENT)/development lint-host
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	cargo fmt

image: $(ENVIRONMENT)/product
	$(BIN)/tunnelbench image build --if-missing

clean:
	rm -rf $(ENVIRONMENT) target build dist demo-result src/tunnelbench/bin
	rm -rf .pytest_cache .ruff_cache .hypothesis __pycache__
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

host:
	@scripts/setup build

lint-host: | host
	@scripts/setup lint

test-host: | host
	@scripts/setup test

# The product as a user installs it, node agent inside.
$(ENVIRONMENT)/product: $(SOURCES) $(ENVIRONMENT)/python | host
	@echo "Building and installing tunnelbench; the first time takes some minutes."
	$(BIN)/python -m pip install --quiet .
	@touch $@

$(ENVIRONMENT)/development: pyproject.toml $(ENVIRONMENT)/python $(ENVIRONMENT)/product | host
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

# Dependency groups need pip 25.1, which is newer than Debian's.
$(ENVIRONMENT)/python: | host
	python3 -m venv $(ENVIRONMENT)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@
