"""Declared pipelines: topics in, SQL or Python, topics and tables out. ``headpond pipeline run FILE`` runs one.

Reading a declaration, without Spark:
    load.py             a file to a ``Pipeline`` (model.py), or all its mistakes with their lines (mistakes.py)
    document.py         TOML and YAML with lines (toml_lines.py); python_form.py: the same from Python
    declaration.py      key by key (table.py, format_keys.py, files.py); checks.py: what belongs together
    sql_names.py        what a SQL text reads from; ddl.py, avro_schema.py: schemas
Running it:
    runner.py           from the first question to the last batch
    preflight.py        what is asked of the broker before Spark starts; folder.py: what is kept between runs
    sources.py          topics to views (decoding.py, avro_codec.py); steps.py: views to views
    sinks.py            views to topics and tables (upsert.py)
    figures.py          what Spark tells of its batches; status.py: where others can read it
    words.py            Spark's failures in one sentence
"""

from headpond.spark.pipeline.python_form import Pipeline

__all__ = ["Pipeline"]
