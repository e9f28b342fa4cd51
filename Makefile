# Everything a newcomer needs: `make demo` and `make test`. The first call sets up .venv by itself.
#
#   make demo      a year of flights, three windows, one pass: a table and a chart in out/
#   make dashboard the flights of a year in a minute, in a browser: charts that zoom by windows of the running query
#   make demo-spark   the same as a Spark streaming job, compared with the embedded answer
#   make test      all tests, docstring and README examples included; the same examples in every run
#   make test-nightly   the same with new examples, ten times as many, and all variants on Spark
#   make test-versions   quick tests on each Python and each Spark that is supported, in environments of their own
#   make bench     windrow against its rivals, in one run
#   make bench-spark   windrow on Spark against Spark's own windows, in one run
#   make bench-pipelines   from Kafka to Kafka, beside Spark's own window; five minutes for each pipeline
#   make check     format, lint, types, import contract
#   make docs      the documentation as a site, in out/site; links are checked
#   make picture   redraws the pictures of the README and of docs; those of the dashboard need `make browser`
#   make kafka     fetches Spark's connector for Kafka and a broker for the tests
#   make postgres  sees to a PostgreSQL server for the tests
#   make browser   sees to Chromium and its driver for the tests
#   make clean     removes what the other targets made, .venv included

PYTHON ?= python3
PY := .venv/bin/python
READY := .venv/ready

# Tests start many processes. Without bytecode on disk each compiles what it imports anew: 2.2 s instead of 0.9 s for windrow and PySpark.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo dashboard demo-spark test test-nightly test-versions java kafka postgres browser bench bench-spark bench-pipelines check docs picture clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(READY)
	@$(PY) examples/flights.py --out out

dashboard: $(READY)
	@$(PY) examples/dashboard.py

demo-spark: $(READY) java
	@$(PY) examples/flights_on_spark.py

test: $(READY) java browser
	@$(MAKE) --no-print-directory -j 3 kafka postgres .venv/spark.jsa
	@$(PY) -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder --durations=25

test-nightly:
	@WINDROW_NIGHTLY=1 $(MAKE) test

test-versions: java
	@"$(PYTHON)" tests/versions/environments.py $(ONLY)

bench: $(READY)
	@$(PY) -m benchmarks

bench-spark: $(READY) java
	@$(PY) -m benchmarks.spark

bench-pipelines: $(READY) java kafka
	@$(PY) -m benchmarks.pipelines

# Spark runs on Java.
java:
	@command -v java > /dev/null || [ -n "$$JAVA_HOME" ] \
		|| { command -v apt-get > /dev/null && [ "$$(id -u)" = 0 ] \
			&& apt-get -qq update && apt-get -qq install -y --no-install-recommends openjdk-17-jre-headless > /dev/null; } \
		|| { echo "this needs Spark, and Spark needs Java 17 or 21: install it (on Debian and Ubuntu: apt install openjdk-17-jre-headless)" >&2; exit 1; }

# Jars, through the Ivy that PySpark ships; once for each version of PySpark.
kafka: $(READY) java
	@{ $(PY) -m windrow.pipelines.jars && $(PY) -m tools.broker; } > .venv/jars.log || { cat .venv/jars.log >&2; exit 1; }

# Debian keeps the server's programs off the path.
postgres:
	@command -v initdb > /dev/null || ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 \
		|| { command -v apt-get > /dev/null && [ "$$(id -u)" = 0 ] \
			&& apt-get -qq update && apt-get -qq install -y --no-install-recommends postgresql > /dev/null; } \
		|| { echo "the tests need a PostgreSQL server: install it (on Debian and Ubuntu: apt install postgresql)" >&2; exit 1; }

# A prerequisite beside Java and not beside PostgreSQL, as apt runs once at a time.
browser:
	@{ command -v chromium && command -v chromedriver; } > /dev/null \
		|| { command -v apt-get > /dev/null && [ "$$(id -u)" = 0 ] \
			&& apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium chromium-driver > /dev/null; } \
		|| { echo "the tests need Chromium and its driver: install them (on Debian and Ubuntu: apt install chromium chromium-driver)" >&2; exit 1; }

# Spark's classes as a JVM has them in memory: tests start many, and each starts in half the time.
.venv/spark.jsa: tests/small_spark.py $(READY) | java
	@$(PY) tests/small_spark.py > .venv/archive.log 2>&1 || { cat .venv/archive.log >&2; exit 1; }

check: $(READY)
	@$(PY) -m ruff format --check --quiet . || { echo "run '$(PY) -m ruff format .'" >&2; exit 1; }
	@$(PY) -m ruff check --quiet .
	@$(PY) -m mypy --no-error-summary
	@$(PY) -c 'from importlinter.cli import lint_imports_command as main; main()' --no-cache > .venv/contracts.log \
		|| { cat .venv/contracts.log >&2; exit 1; }
	@echo "format, lint, types and import contracts are clean"

docs: $(READY)
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo "the documentation is in out/site/index.html"

picture: $(READY)
	@$(PY) examples/flights.py --out docs/pictures > /dev/null
	@$(PY) docs/pictures/slices.py
	@$(PY) docs/pictures/spans.py
	@$(PY) docs/pictures/plots.py
	@$(PY) docs/pictures/dashboard.py

$(READY): pyproject.toml constraints.txt
	@command -v "$(PYTHON)" > /dev/null \
		|| { echo "windrow needs Python 3.11 to 3.14, and there is no '$(PYTHON)' here: install it, or name one with make PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' \
		|| { echo "windrow needs Python 3.11 to 3.14, and '$(PYTHON)' is $$("$(PYTHON)" -V): name another one with make PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2> /dev/null \
		|| { echo "'$(PYTHON)' cannot create virtual environments: install its venv module (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "setting up .venv (once; this takes a minute)"
	@$(PY) -c '' 2> /dev/null || rm -rf .venv
	@"$(PYTHON)" -m venv .venv
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[test,demo,bench,check,docs]'
	@touch $@

clean:
	@rm -rf .venv .versions out build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
