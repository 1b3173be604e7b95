# Every target sets up what it needs: a virtual environment with the CPU build of torch (constraints.txt).
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin

INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint browser docs reproduce clean

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
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
	$(BIN)/fewnode experiment paper/at_hand.toml --data-dir $(DATA) --out $(OUT) --workers 2
	$(BIN)/fewnode report $(OUT) --out $(OUT)/report.html
	cmp $(OUT)/table.csv paper/results/table.csv && echo 'the same table as in paper/results' || true

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The page is tested in Debian's Chromium, installed here where that is allowed.
APT := $(if $(filter 0,$(shell id -u)),,sudo -n )env DEBIAN_FRONTEND=noninteractive apt-get -qq
browser:
	@command -v chromium >/dev/null || ( $(APT) update && $(APT) install -y --no-install-recommends chromium ) >/dev/null 2>&1 \
	  || echo 'SKIPPED: tests of the page in a browser. There is no chromium, and it could not be installed (apt-get install chromium).'

test: lint browser
	$(BIN)/pytest -n 2 --dist worksteal -r s

# The site; its tutorials are run while it is built. `make test` builds it, too.
docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build
	@echo docs/_build/index.html

clean:
	rm -rf $(VENV) demo reproduced docs/_build docs/_made
