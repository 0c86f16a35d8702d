# Penstock: `make run` starts a broker, `make test` runs the tests. Everything lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test lint interop setup clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Penstock needs Python 3.11 or newer; this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

run: $(VENV)/.ready
	$(BIN)/penstock serve

test: $(VENV)/.ready
	$(BIN)/pytest

# With Apache Kafka 4.3.1 and its tools (from Maven; needs java 17+ and mvn).
interop: $(VENV)/.ready
	PENSTOCK_TEST_KAFKA_CLASSPATH="$$(tools/kafka_oracle classpath)" $(BIN)/pytest -m interop tests

lint: $(VENV)/.ready
	$(BIN)/ruff check src tests bench tools
	$(BIN)/ruff format --check src tests bench tools
	$(BIN)/mypy

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist
include bench/Makefile.inc
