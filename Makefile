PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder
# As pip does, take the best match of all indexes: the lock's hashes make that safe.
INSTALL := $(BIN)/python .ci/install.py --index-strategy unsafe-best-match
# The packages of pyproject.toml and of extras, in the lock's versions. One that has no hash in the lock fails.
LOCKED := $(INSTALL) --require-hashes --constraint requirements.lock --excludes requirements-excluded.in -r pyproject.toml
unexport PYTHONDONTWRITEBYTECODE   # compiled modules are a third of a step's start-up

.DEFAULT_GOAL := help
.PHONY: help corpus summary ui test test-slow test-fast faults check lint types validate peers test-peers servers cluster wheels docs lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

corpus: $(VENV)/installed ## install, build the sample corpus, print what happened to every source
	@echo "Building the corpus of pipeline.yaml (what is published already is kept) ..."
	@$(BIN)/corpus build

summary: $(VENV)/installed ## print the summary of the corpus
	@$(BIN)/corpus summary

ui: $(VENV)/installed ## serve Dagster's web UI at http://127.0.0.1:3000
	$(BIN)/corpus ui --port 3000

test: $(VENV)/installed-dev ## run the tests but those that take longest; those of readers that are not installed are skipped
	@TOKENMILL_CONFIG=pipeline.yaml $(BIN)/python -m pipeline_defs.compile_kernels   # once, not in each worker
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/installed-dev ## run the tests that take longest, which make test leaves out
	$(PYTEST) -m slow

test-fast: $(VENV)/installed-dev ## run the tests of the pure functions: under a minute on two cores
	$(PYTEST) -m fast

faults: export PYTHONPATH = tests
faults: $(VENV)/installed-dev ## all examples of slow random tests; kill and disturb some 400 builds: more than an hour
	$(PYTEST) -m slow --hypothesis-profile=search
	$(BIN)/python -m faults.crash_points --points 1000
	$(BIN)/python -m faults.fault_table
	$(BIN)/python -m faults.page_children
	$(MAKE) VENV=.venv-peers peers
	.venv-peers/bin/python -m faults.killed_trainings --kills 250   # of each of four trainers

check: lint types test test-slow validate ## lint, types, all tests, definitions; needs no PyTorch

lint: $(VENV)/installed-dev ## check style and format with ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev ## check types with mypy
	$(BIN)/mypy assets corpus_loader pipeline_defs resources tokenmill

validate: $(VENV)/installed ## load Dagster's definitions
	$(BIN)/dagster definitions validate -w workspace.yaml

peers: $(VENV)/installed-peers ## install PyTorch and other projects' readers (290 MB)

test-peers: export TOKENMILL_PEERS = 1   # a test that needs PyTorch or another reader fails without it
test-peers: $(VENV)/installed-peers ## run the tests that need PyTorch or another reader
	$(PYTEST) -m peers

# With the variable a test whose server is missing fails. (A comment after it would be in its value.)
servers: export TOKENMILL_SERVERS = 1
servers: $(VENV)/installed-cluster ## run the tests against real servers: PostgreSQL, Redis, Ceph's S3
	$(BIN)/pytest tests/servers

# A namespace of its own: Ray's ports are no one else's, and all ends with the tests.
cluster: export TOKENMILL_CLUSTER = 1
cluster: $(VENV)/installed-cluster ## install Ray (76 MB), run the tests on a cluster of this machine; needs root
	unshare --net --pid --fork --kill-child --mount-proc sh -c 'ip link set lo up && exec $(BIN)/pytest tests/cluster'

# Both give the same bytes for the same commit.
DIST := dist
BUILD = SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir $(DIST)
wheels: $(VENV)/installed ## build the wheels of the command and of the loader into dist/
	@$(BUILD) .
	@$(BUILD) corpus_loader

# Strict: a link to a page or heading that is not there fails. Nothing is fetched while the site is built.
docs: $(VENV)/installed-docs ## make the site of README, docs/ and the reference in build/site
	@PYTHONPATH=. $(BIN)/python .ci/site_pages.py build/docs
	@$(BIN)/zensical build --clean --strict

# Locks with hashes; no registry is named in them. Each keeps its versions where it can: remove it for newer ones.
COMPILE := $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links \
	--index-strategy unsafe-best-match --excludes requirements-excluded.in --python-version 3.11
lock: $(VENV)/installed-uv ## resolve the dependencies again
	$(COMPILE) --universal requirements-uv.in -o requirements-uv.lock
	$(COMPILE) --universal --constraint requirements-torch.in --all-extras --group build --group docs pyproject.toml -o requirements.lock
	$(COMPILE) requirements-loaders.in -o requirements-loaders.lock

clean: ## remove .venv and all that was built, the sample corpus too
	rm -rf .venv .venv-* corpus_store build dist *.egg-info corpus_loader/*.egg-info

# pip installs uv, uv installs the rest: all by the hashes of the locks.
$(VENV)/installed-uv: requirements-uv.lock
	@echo "Installing uv into $(VENV) ..."
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --no-deps --require-hashes -r requirements-uv.lock
	@touch $@

$(VENV)/installed: $(VENV)/installed-uv requirements.lock requirements-excluded.in pyproject.toml corpus_loader/pyproject.toml
	@echo "Installing the locked dependencies into $(VENV) ..."
	@$(LOCKED) --group build
	@$(INSTALL) --no-deps --no-build-isolation --editable . --editable ./corpus_loader
	@$(BIN)/python -m compileall -q assets corpus_loader pipeline_defs resources tokenmill
	@touch $@

# What each environment has besides.
WITH_dev := --extra dev
WITH_docs := --group docs
WITH_bench := --extra bench
WITH_deploy := --extra deploy
WITH_cluster := --extra dev --extra deploy --extra remote
WITH_peers := --extra dev --extra peers --extra remote --extra torch
SIZE_cluster := , a download of 76 MB
SIZE_peers := , a download of 290 MB: 192 of them PyTorch (its CPU build)

$(VENV)/installed-%: $(VENV)/installed
	@echo "Installing the locked packages of $* into $(VENV)$(SIZE_$*) ..."
	@$(LOCKED) $(or $(WITH_$*),$(error no packages are named $*))
	@touch $@
