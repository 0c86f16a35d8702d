# Headpond: `make run` starts a broker, `make test` runs the tests. Everything lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Where it is set, each of the thousand processes that the tests start compiles all that it imports: twice the time.
unexport PYTHONDONTWRITEBYTECODE

CORE := $(VENV)/.core
WHOLE := $(VENV)/.whole

.PHONY: run demo test test-core test-simulation simulate ablations test-spark test-long spark-test spark-chaos chaos lint interop container-test parity-record setup clean

setup: $(WHOLE)

# One environment with two stamps: `make run` installs the core, everything else adds the test tools, PySpark and a Java
# runtime (1.4 GB).
$(CORE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Headpond needs Python 3.11 or newer and this is " + sys.version.split()[0] + "; name another one: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	@echo "Installing Headpond into $(VENV) ..." >&2
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --disable-pip-version-check -c constraints.txt -e . >&2
	@touch $@

$(WHOLE): $(CORE)
	@echo "Adding test tools, PySpark and Java to $(VENV) (1.4 GB, once) ..." >&2
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev,spark]'
	@touch $@

# Nothing but the broker's one line goes to stdout.
run: $(CORE)
	@echo 'The command headpond is $(CURDIR)/$(BIN)/headpond. In another terminal:' >&2
	@echo '  export PATH="$(CURDIR)/$(BIN):$$PATH"' >&2
	@$(BIN)/headpond serve

# The whole product in less than 30 minutes on 2 cores: the core, what of Spark needs no JVM, simulated runs, then Spark itself. Skipped
# tests are listed with their reasons: they need `make interop`, or a system that this one is not.
test: test-core test-simulation test-spark

# Three at a time: most tests wait for a broker to start or a disk to sync.
test-core: $(WHOLE)
	$(BIN)/pytest -n 3 --dist loadfile -rfEs -m 'not jvm and not long and not simulation' --at-least tests/spark=$(SPARK_TESTS_WITHOUT_JVM)

# 200 seeds of the simulator, the planted bugs that it must find, and the scripts of bugs that it found; `make simulate`
# plays more.
test-simulation: $(WHOLE)
	$(BIN)/pytest tests/simulation -n 2 -rfEs -m 'simulation and not long'

# The real broker under seeded faults, on all cores, until the first failure: SEEDS many from FIRST on, or one SEED with
# everything that happened in it.
SEEDS ?= 1000
FIRST ?= 1
simulate: $(WHOLE)
	@cd tests && ../$(BIN)/python -m simulation.run $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --first $(FIRST))

# Each planted bug under the ordinary faults, until it is found, in at most 500 seeds; half an hour.
ablations: $(WHOLE)
	@cd tests && ../$(BIN)/python -m simulation.ablations

# One process and one session: source, sink with a kill of a Python worker, of the JVM and of the driver (an executor's needs
# a cluster: `make spark-test` has it), pipelines, lake. Topics made by chance name their seed when a comparison fails:
# HEADPOND_SPARK_SEED takes it.
test-spark: $(WHOLE)
	$(BIN)/pytest tests/spark -rfEs -m 'jvm and tier and not long' --at-least tests/spark=$(SPARK_TESTS_WITH_JVM)

# So many of Spark's tests must pass: a run that has left them out fails.
SPARK_TESTS_WITHOUT_JVM := 580
SPARK_TESTS_WITH_JVM := 60
SPARK_TESTS_ALL := 800

# Every test of Spark.
spark-test: $(WHOLE)
	HEADPOND_EXAMPLES=all $(BIN)/pytest tests/spark -rfEs --at-least tests/spark=$(SPARK_TESTS_ALL)

# What takes too long for `make test`: recovery from every disk that a crash may leave, every example of the tests that
# make them by chance, all kinds of chaos, and the variants of which `make test` has one or two (marked `long`).
WITH_EXAMPLES := tests/spark/test_codec_fuzz.py tests/unit/cluster
test-long: $(WHOLE)
	HEADPOND_CRASHES=all HEADPOND_EXAMPLES=all $(BIN)/pytest -n 2 --dist loadfile -rfEs tests/crash $(WITH_EXAMPLES)
	HEADPOND_CHAOS_SECONDS=6 $(BIN)/pytest -n 2 --dist loadfile -rfEs -m 'long and not jvm'

# Exactly once in Spark under kill -9: every victim at every step, 91 kills, half an hour; `spark-test` has
# some of them.
spark-chaos: $(WHOLE)
	HEADPOND_SPARK_CHAOS=1 $(BIN)/pytest tests/spark/test_sink_kills.py -v

# From nothing: a broker, events, a pipeline, its result; then it stops.
demo: $(WHOLE)
	@$(BIN)/python examples/demo.py

# Groups and transactions under kills, for CHAOS_SECONDS each; the ordinary run does the same for a few seconds. What fails
# names its seed: HEADPOND_CHAOS_SEED takes it.
CHAOS_SECONDS ?= 120
chaos: $(WHOLE)
	HEADPOND_CHAOS_SECONDS=$(CHAOS_SECONDS) $(BIN)/pytest tests/chaos -v

# With Apache Kafka 4.3.1 and its tools (from Maven; needs java 17+ and mvn), with Kafka Streams, Connect and MirrorMaker,
# with Spark's own Kafka connector (PySpark 4.0.0 in an environment of its own), with older releases of Python's clients,
# and with Go and JavaScript clients where go and node are installed; our own source, sink and pipelines of Spark with a
# real Kafka. What was left out is listed. The ordinary run skips these tests.
WITH_KAFKA := classpath="$$(tools/kafka_oracle classpath)" && HEADPOND_TEST_KAFKA_CLASSPATH="$$classpath" HEADPOND_TEST_DOWNLOADS=1
interop: $(WHOLE)
	@command -v java >/dev/null || { echo "make interop needs java 17 or newer" >&2; exit 1; }
	$(WITH_KAFKA) $(BIN)/pytest -m interop -rfEs

# The steps of Containerfile in a Debian root made with debootstrap, as uid 65532 and with a read-only root; needs root
# and the network, and fails where it has to leave them out.
container-test: $(WHOLE)
	HEADPOND_TEST_DOWNLOADS=1 $(BIN)/pytest tests/system/test_system_container.py -v -rfEs --at-least tests/system=$(CONTAINER_TESTS)
CONTAINER_TESTS := 8

# The answers of a real Kafka that `make test` compares ours with, recorded anew; FAMILY="fetch topics" for some of them.
parity-record: $(WHOLE)
	@command -v java >/dev/null || { echo "make parity-record needs java 17 or newer" >&2; exit 1; }
	classpath="$$(tools/kafka_oracle classpath)" && HEADPOND_TEST_KAFKA_CLASSPATH="$$classpath" $(BIN)/python tools/record_parity.py $(FAMILY)

lint: $(WHOLE)
	$(BIN)/ruff check src tests bench tools
	$(BIN)/ruff format --check src tests bench tools
	$(BIN)/mypy

clean:
	rm -rf $(VENV) .venv-spark .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

include bench/Makefile.inc
