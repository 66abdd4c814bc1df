# One command each. Every target makes the .venv it needs; a second call starts at once.
#   make demo    train a network on real digits; results in ./rushlight-demo, replaced when run again
#   make check   lint and tests of the files that differ from the last commit, in 5 to 40 seconds (FILE='rushlight/core/views.py ...')
#   make test    what a change can break, in minutes (ORACLE=1 compares with torch 2.13, else with golden files)
#   make test-all   the exhaustive tests, too: all samples, dtypes, sizes, long programs; CI runs these
#   make test-reference   the tests with faster ways off, on the reference kernels (some: TESTED='core ops/shape' ARGS=--quick)
#   make lint    ruff, its formatter, tools/words.py and mypy
#   make bench   speed side by side with torch (installs torch)
#   make docs    the documentation, into ./site
#   make dist    source archive and wheel, checked: installed into an empty environment, which runs the README
#   make pictures   write the moving picture of README and site, and the pictures of errors, training and the demo (Chromium)
#   make figures    measure the figures of README.md and write them there
#   make stubs   write the .pyi files from the op table
#   make golden  write the golden files from torch
#   make ops     write docs/ops.md: every op, and how much of torch there is
#   make faster  write docs/faster.md: which ops have a faster way, and from what size on
#   make fuzz SECONDS=300   random programs beside torch, so long of each kind: tests/fuzz/README.md (ARGS='--seed 1')
#   make browser   the core of the suite in Pyodide under node: tests/browser/README.md
#   make conformance   measure against torch; no count may be below tests/conformance/floor.json (all: ARGS=--full;
#                   TORCH=2.15.0: another torch, in an environment of its own; docs/torch-versions.md)
#   make libraries   72 third-party libraries beside torch's numbers, in an environment of its own; docs/libraries.md
#   make zoo     pretrained models of 13 packages beside torch and onnxruntime, in an environment of its own; docs/zoo.md
#   make clean   remove all that make made

PYTHON ?= python3
JOBS   ?= 2
SECONDS ?= 60
VENV   := .venv
BIN    := $(VENV)/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
comma  := ,
# comments and docstrings that tools/words.py reports: texts with many pronouns, and with a phrase; these numbers may only fall
MAX_HARD_TEXTS := 0
MAX_PHRASES := 0
# folders whose tests check results: the faster ways replace their kernels
TESTED ?= autograd core creation kernels nn ops optim random sparse table
TESTS  := test$(if $(ORACLE),$(comma)oracle)
# test processes side by side: one BLAS thread each, so that they do not fight for the cores
ONE_THREAD := OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 OMP_NUM_THREADS=1
# benchmarks run on the BLAS kernels a user's machine would pick
AS_A_USER  := env -u OPENBLAS_CORETYPE

.PHONY: help demo check test test-all test-reference lint words bench docs stubs golden ops faster fuzz browser conformance libraries zoo dist pictures figures clean

help:
	@sed -n 's/^#   //p' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/has-demo
	$(BIN)/rushlight demo --overwrite $(ARGS)

check: $(VENV)/has-test,lint
	$(BIN)/python tools/check.py $(FILE) $(ARGS)

test: $(VENV)/has-$(TESTS)
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) --quick $(ARGS)

test-all: $(VENV)/has-$(TESTS)
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) $(ARGS)

test-reference: $(VENV)/has-$(TESTS)
	RUSHLIGHT_FAST=0 $(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) $(addprefix tests/,$(TESTED)) $(ARGS)

lint: $(VENV)/has-lint
	$(BIN)/ruff check rushlight tests examples benchmarks tools
	$(BIN)/ruff format --check rushlight tests examples benchmarks tools
	@$(MAKE) --silent words
	$(BIN)/mypy

words: $(VENV)/made
	$(BIN)/python tools/words.py --count --pronouns $(MAX_HARD_TEXTS) --phrases $(MAX_PHRASES)

bench: $(VENV)/has-oracle
	@set -e; for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(AS_A_USER) $(BIN)/python $$file $(ARGS); done

docs: $(VENV)/has-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

dist: $(VENV)/has-release
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/try_wheel.py dist

pictures: $(VENV)/has-test
	$(BIN)/python tools/step_page_picture.py
	$(BIN)/python tools/error_pictures.py
	$(BIN)/python tools/live_pictures.py
	$(BIN)/python tools/training_pictures.py
	$(BIN)/python tools/demo_pictures.py
	$(BIN)/python tools/speed_chart.py benchmarks/speed.json

figures: $(VENV)/has-test,oracle
	$(BIN)/python tools/figures.py --write

stubs: $(VENV)/has-test
	$(BIN)/python tools/stubs.py

golden: $(VENV)/has-test,oracle
	$(ONE_THREAD) $(BIN)/python -m pytest -q --golden=write $(ARGS)

ops: $(VENV)/has-test,oracle
	$(BIN)/python tools/ops_docs.py

faster: $(VENV)/has-test
	$(BIN)/python tools/faster_docs.py

fuzz: $(VENV)/has-test,oracle
	$(ONE_THREAD) $(BIN)/python tests/fuzz all --seconds $(SECONDS) $(ARGS)
	$(ONE_THREAD) $(BIN)/python tests/fuzz/files.py --seconds $(SECONDS)
	$(ONE_THREAD) $(BIN)/python tests/fuzz/empties.py --seconds $(SECONDS) $(ARGS)
	$(ONE_THREAD) $(BIN)/python tests/fuzz/failures.py --seconds $(SECONDS) $(ARGS)
	-$(ONE_THREAD) $(BIN)/python tests/fuzz/halves.py --seconds $(SECONDS) $(ARGS)
	-$(ONE_THREAD) $(BIN)/python tests/fuzz/bad_values.py --seconds $(SECONDS) $(ARGS)

browser: $(VENV)/has-test
	$(BIN)/python tests/browser $(ARGS)

conformance: $(if $(TORCH),.venv-$(TORCH)/made,$(VENV)/has-test$(comma)oracle)
	$(ONE_THREAD) $(if $(TORCH),.venv-$(TORCH)/bin,$(BIN))/python tools/conformance_floor.py $(ARGS)

# Another torch, with what tests need beside it. A machine's own constraints may name an older torch: they do not count here.
.venv-%/made: pyproject.toml
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	PIP_CONSTRAINT=/dev/null $(@D)/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable '.[full]' --group test --group beside torch==$*
	@touch $@

libraries: .venv-libraries/made
	$(ONE_THREAD) .venv-libraries/bin/python tests/libraries/run.py $(ARGS)

.venv-libraries/made: tests/libraries/requirements.txt tests/libraries/constraints.txt
	$(PYTHON) -m venv .venv-libraries
	.venv-libraries/bin/python -m pip install --quiet --disable-pip-version-check -r $< -c tests/libraries/constraints.txt
	touch $@

zoo: $(VENV)/has-test
	$(AS_A_USER) $(BIN)/python -m tests.zoo.run $(ARGS)

clean:
	rm -rf $(VENV) .venv-* site dist rushlight-demo .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find rushlight tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each set of dependency groups: has-test,oracle installs the groups test and oracle, and the package with the
# extras that tests and pages need. has-demo installs what a user of the demo installs.
$(VENV)/has-demo: pyproject.toml | $(VENV)/made
	$(INSTALL) --editable '.[demo]'
	@touch $@

$(VENV)/has-%: pyproject.toml | $(VENV)/made
	$(INSTALL) --editable '.[full,lessons,mpi]' $(foreach group,$(subst $(comma), ,$*),--group $(group))
	@touch $@

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "rushlight needs Python 3.10 or newer; $(PYTHON) is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv --clear $(VENV)
	$(INSTALL) --upgrade 'pip>=25.1'  # which knows dependency groups
	@touch $@
