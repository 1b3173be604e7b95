# Every target sets up what it needs: a virtual environment with the CPU build of torch (constraints.txt).
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin

# Bytecode is kept, whatever the environment says: the tests start many processes, and each would compile all sources again.
unexport PYTHONDONTWRITEBYTECODE

INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test check soak audit coverage lint lint-page style types tests loops browser versions docs dist reproduce budget clean

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[serve,torch]'
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(INSTALL) -e '.[dev]'
	touch $@

demo: $(VENV)/.core
	$(BIN)/fewnode demo --out demo

# The paper's evaluation on networks that can be had; DATA holds those that are not embedded.
DATA ?= data
OUT ?= reproduced
reproduce: $(VENV)/.core
	$(BIN)/fewnode experiment research/since.toml research/at_hand.toml --data-dir $(DATA) --out $(OUT) --workers 2
	$(BIN)/fewnode report $(OUT) --out $(OUT)/report.html

lint: style types

style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

# The page by Biome, from npm; its settings are in biome.json.
lint-page:
	@command -v npx >/dev/null || { echo 'SKIPPED: the page is not linted. There is no npx (apt-get install npm).'; exit 0; }; \
	  npx --yes @biomejs/biome@2.6.8 lint --error-on-warnings .

# The page is tested in Debian's Chromium, installed here where that is allowed.
APT := $(if $(filter 0,$(shell id -u)),,sudo -n )env DEBIAN_FRONTEND=noninteractive apt-get -qq
browser:
	@command -v chromium >/dev/null || ( $(APT) update && $(APT) install -y --no-install-recommends chromium ) >/dev/null 2>&1 \
	  || echo 'SKIPPED: tests of the page in a browser. There is no chromium, and it could not be installed (apt-get install chromium).'

# Types are checked beside the tests, and while the loops are compiled that all workers of the tests need.
# Three workers for two cores: some tests wait for browsers, clusters and services.
test: $(VENV)/.dev browser style
	$(MAKE) --no-print-directory -j2 types tests

tests: loops
	$(BIN)/pytest -n 3 --dist worksteal -r s

loops: $(VENV)/.dev
	$(BIN)/python tests/compile_loops.py

$(VENV)/.check: $(VENV)/.dev
	$(INSTALL) -e '.[check]'
	touch $@

# The wheel in an empty environment, reliability and security at length, about 20 minutes; its figures go into docs/reliability.md.
FIGURES := .figures.json
export FEWNODE_FIGURES := $(abspath $(FIGURES))
check: $(VENV)/.check lint lint-page browser audit
	@command -v nginx >/dev/null || $(APT) install -y --no-install-recommends nginx-light >/dev/null 2>&1 || true
	$(BIN)/pytest -n 2 --dist worksteal -m 'check and not soak' -r s
	$(MAKE) coverage
	$(BIN)/python tests/figures.py $(FIGURES) docs/reliability.md

# The same for hours, and whether the tests notice that a line of the readers is wrong.
soak: $(VENV)/.check
	$(BIN)/pytest tests/reliability tests/serve/test_model.py -n 2 --dist worksteal -m soak -r s
	$(BIN)/mutmut run
	$(BIN)/python tests/noticed.py

# Known flaws: of our code by its patterns, of what it uses by a database, which `--strict` needs to reach.
audit: $(VENV)/.check
	$(BIN)/bandit -q -c pyproject.toml -r src
	$(BIN)/pip-audit --strict --skip-editable --progress-spinner off \
	  || echo 'NOT AUDITED: a dependency has a known flaw, or the database does not know it or cannot be reached; see above.'

# Branch coverage: 95 % of everything, 100 % of what reads strangers' bytes.
coverage: $(VENV)/.check
	env -u FEWNODE_FIGURES $(BIN)/pytest -n 2 --dist worksteal --cov --cov-report=
	$(BIN)/python tests/covered.py

# The parts that other Pythons could break, on each Python that is here.
VERSIONS ?= 3.11 3.12 3.13 3.14
versions:
	@for version in $(VERSIONS); do python$$version -c pass 2>/dev/null || { echo "python$$version is not here"; continue; }; \
	  python$$version -m venv .venv-$$version && .venv-$$version/bin/pip install -q -c constraints.txt -e '.[serve,pyg]' beartype hypothesis pandas networkx pytest \
	  && .venv-$$version/bin/python -W error::DeprecationWarning -m pytest -p no:cacheprovider $(CORE_TESTS) || exit 1; done
CORE_TESTS := tests/test_graph.py tests/test_gpn.py tests/test_train.py tests/test_estimator.py tests/storage/test_io.py tests/predict/test_recognise.py tests/test_scikit.py tests/machine/test_locks.py tests/datasets/test_tables.py

# What each part of the house holds; figures that have become smaller are written down, and may not grow again.
budget: $(VENV)/.dev
	$(BIN)/python tests/layout.py

# Wheel and sdist, in dist/.
dist: $(VENV)/.dev
	$(BIN)/python -m build --no-isolation --outdir dist .

# The site; its tutorials are run while it is built. `make test` builds it, too.
docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build
	@echo docs/_build/index.html

clean:
	rm -rf $(VENV) .venv-3.* demo reproduced docs/_build docs/_made $(FIGURES) .coverage mutants
