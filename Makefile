# make corpus   build the sample corpus          make ui      look at it in the web UI
# make test     run the tests                    make check   what CI runs: lint, types, tests
PYTHON ?= python3
BIN := .venv/bin
export DAGSTER_HOME ?= $(CURDIR)/.dagster
unexport PYTHONDONTWRITEBYTECODE   # compiled modules are a third of a step's start-up

.PHONY: corpus summary ui test check lint lock peers clean

corpus: .venv/installed
	@echo "Building the corpus of pipeline.yaml (what is published already is kept) ..."
	$(BIN)/dagster job execute -m pipeline_defs.definitions -j build_corpus
	$(BIN)/dagster job execute -m pipeline_defs.definitions -j mix_corpus
	@$(BIN)/corpus summary

summary: .venv/installed
	@$(BIN)/corpus summary

ui: .venv/installed
	@echo "The web UI is at http://127.0.0.1:3000 (Ctrl-C ends it)"
	$(BIN)/dagster dev -w workspace.yaml -h 127.0.0.1 -p 3000

test: .venv/installed-dev
	$(BIN)/pytest -n 2 --dist loadfile

check: export TOKENMILL_PEERS = 1   # a test that needs PyTorch or another reader fails without it
check: .venv/installed-peers lint test
	$(BIN)/dagster definitions validate -w workspace.yaml

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy assets corpus_loader pipeline_defs resources

# Locks with hashes; no registry is named in them.
lock:
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
		pyproject.toml requirements-build.in -o requirements.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
		--extra dev pyproject.toml requirements-build.in -o requirements-dev.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
		--extra bench pyproject.toml requirements-build.in -o requirements-bench.lock
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
		--index-strategy unsafe-best-match --no-emit-package torchvision --constraint requirements-torch.in \
		--extra dev --extra remote --extra torch --extra peers pyproject.toml requirements-build.in -o requirements-peers.lock
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
		--index-strategy unsafe-best-match --no-emit-package torchvision requirements-loaders.in -o requirements-loaders.lock

.venv/installed: requirements.lock pyproject.toml
	@echo "Installing the locked dependencies into .venv ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q assets corpus_loader pipeline_defs resources
	@touch $@

.venv/installed-dev: .venv/installed requirements-dev.lock
	@echo "Installing the locked test dependencies into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	@touch $@

# PyTorch (its CPU build) and the formats' own readers: the tests that need them run once they are there.
.venv/installed-peers: .venv/installed-dev requirements-peers.lock
	@echo "Installing PyTorch and the readers of other projects into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-peers.lock
	@touch $@

peers: .venv/installed-peers

clean:
	rm -rf .venv corpus_store build *.egg-info
