# Headpond: `make run` starts a broker, `make test` runs the tests. Everything lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run demo test spark-test spark-chaos chaos lint interop parity-record setup clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Headpond needs Python 3.11 or newer and this is " + sys.version.split()[0] + "; another one: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

# Not shown by make: the one line on stdout is the broker's.
run: $(VENV)/.ready
	@$(BIN)/headpond serve

# Two at a time: most tests wait for a broker to start or a disk to sync.
test: $(VENV)/.ready
	$(BIN)/pytest -n 2 --dist loadfile

# The tests of Spark, in an environment of its own with the extra `spark` (1.4 GB); the ordinary run skips those of them
# that need it. Topics made by chance name their seed when a comparison fails: HEADPOND_SPARK_SEED takes it.
SPARK_VENV := .venv-spark
spark-test: $(SPARK_VENV)/.ready
	$(SPARK_VENV)/bin/pytest tests/spark

# Exactly once in Spark under kill -9: every victim at every step, 91 kills, half an hour; `spark-test` has
# some of them.
spark-chaos: $(SPARK_VENV)/.ready
	HEADPOND_SPARK_CHAOS=1 $(SPARK_VENV)/bin/pytest tests/spark/test_sink_kills.py -v

# From nothing: a broker, events, a pipeline, its result; then it stops.
demo: $(SPARK_VENV)/.ready
	@$(SPARK_VENV)/bin/python examples/demo.py

$(SPARK_VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(SPARK_VENV)
	$(SPARK_VENV)/bin/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev,spark]' duckdb
	touch $@

# Groups and transactions under kills, for CHAOS_SECONDS each; the ordinary run does the same for a few seconds. What fails
# names its seed: HEADPOND_CHAOS_SEED takes it.
CHAOS_SECONDS ?= 120
chaos: $(VENV)/.ready
	HEADPOND_CHAOS_SECONDS=$(CHAOS_SECONDS) $(BIN)/pytest tests/chaos -v

# With Apache Kafka 4.3.1 and its tools (from Maven; needs java 17+ and mvn), with Kafka Streams, Connect and MirrorMaker,
# with Spark's own Kafka connector (PySpark 4.0.0 in an environment of its own), with older releases of Python's clients,
# and with Go and JavaScript clients where go and node are installed; then, with the extra `spark`, our own source, sink
# and pipelines with a real Kafka. What was left out is listed. The ordinary run skips these tests.
INTEROP_OF_SPARK := $(addprefix tests/interop/test_interop_spark,.py _checkpoint.py _lake.py _security.py _sink.py _stream.py)
WITH_KAFKA := classpath="$$(tools/kafka_oracle classpath)" && HEADPOND_TEST_KAFKA_CLASSPATH="$$classpath" HEADPOND_TEST_DOWNLOADS=1
interop: $(VENV)/.ready $(SPARK_VENV)/.ready
	@command -v java >/dev/null || { echo "make interop needs java 17 or newer" >&2; exit 1; }
	$(WITH_KAFKA) $(BIN)/pytest -m interop -rs $(addprefix --ignore=,$(INTEROP_OF_SPARK))
	$(WITH_KAFKA) $(SPARK_VENV)/bin/pytest -m interop -rs $(INTEROP_OF_SPARK)

# The answers of a real Kafka that `make test` compares ours with, recorded anew; FAMILY="fetch topics" for some of them.
parity-record: $(VENV)/.ready
	@command -v java >/dev/null || { echo "make parity-record needs java 17 or newer" >&2; exit 1; }
	classpath="$$(tools/kafka_oracle classpath)" && HEADPOND_TEST_KAFKA_CLASSPATH="$$classpath" $(BIN)/python tools/record_parity.py $(FAMILY)

lint: $(VENV)/.ready
	$(BIN)/ruff check src tests bench tools
	$(BIN)/ruff format --check src tests bench tools
	$(BIN)/mypy

clean:
	rm -rf $(VENV) $(SPARK_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

include bench/Makefile.inc
