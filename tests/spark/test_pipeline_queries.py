"""Steps are queries: a command is refused and not executed, wherever it stands, in a dry run and in any other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headpond.spark.pipeline.failures import RunFailed
from headpond.testing import Broker
from spark.pipelines import Declared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMANDS = [
    "INSERT OVERWRITE DIRECTORY '{victim}' USING json SELECT 1 AS a",
    "WITH x AS (SELECT 1 AS a) INSERT OVERWRITE DIRECTORY '{victim}' USING json SELECT * FROM x",
    "FROM people INSERT OVERWRITE DIRECTORY '{victim}' USING json SELECT 1 AS a",
    "( INSERT INTO t SELECT 1 )",
    "CREATE TABLE t USING parquet LOCATION '{victim}' AS SELECT 1 AS a",
    "CREATE OR REPLACE TEMP VIEW people AS SELECT 1 AS id",
    "DROP VIEW people",
    "SET spark.sql.ansi.enabled = false",
    "RESET",
    "ADD JAR '{victim}/x.jar'",
    "CACHE TABLE people AS SELECT 1",
    "CLEAR CACHE",
    "EXPLAIN SELECT 1",
    "DESCRIBE people",
    "SHOW TABLES",
    "USE default",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "BEGIN SELECT 1; END",
    "SELECT 1; DROP VIEW people",
    "SELECT 1) x, (SELECT 2",
    "/* SELECT */ -- SELECT \\\n SELECT\n DROP VIEW people",
    "MERGE INTO t USING people ON t.id = people.id WHEN MATCHED THEN DELETE",
]
QUERIES = [
    "SELECT id FROM people",
    "WITH x AS (SELECT id FROM people) SELECT * FROM x",
    "FROM people SELECT id",
    "FROM people |> SELECT id",
    "TABLE people",
    "(SELECT id FROM people)",
    "SELECT id FROM people UNION ALL SELECT id FROM people -- the end \\",
    "SELECT id, 'INSERT' AS `insert`, id AS delete FROM people",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_refused_and_not_executed(spark: SparkSession, tmp_path: Path, command: str) -> None:
    from pyspark.errors import ParseException

    from headpond.spark.pipeline.queries import NotAQuery, only_queries, query

    (tmp_path / "precious.txt").write_text("precious")
    spark.sql("SELECT 7 AS id").createOrReplaceTempView("people")
    text = command.format(victim=tmp_path)
    with pytest.raises((NotAQuery, ParseException)):
        query(spark, text)
    with only_queries(spark), pytest.raises((NotAQuery, ParseException)):
        spark.table("people").sparkSession.sql(text)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]
    assert spark.table("people").collect()[0]["id"] == 7
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_is_taken_as_it_is(spark: SparkSession, text: str) -> None:
    from headpond.spark.pipeline.queries import only_queries, query

    spark.sql("SELECT 7 AS id").createOrReplaceTempView("people")
    assert query(spark, text).collect()[0]["id"] == 7
    with only_queries(spark):
        assert spark.sql(text).collect()[0]["id"] == 7
        assert spark.sql("SELECT :a AS id", {"a": 5}).collect()[0]["id"] == 5
        assert spark.sql("SELECT ? AS id", args=[5]).collect()[0]["id"] == 5
    spark.sql("SET spark.sql.ansi.enabled = true")


def test_a_step_that_is_a_command_is_told_with_its_line(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, ['{"id": 1}'])
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "precious.txt").write_text("precious")
    text = f"""
        name = "{topic}"
        [source.people]
        topic = "{topic}"
        format = "json"
        schema = "id INT"
        [step.evil]
        sql = '''
            WITH x AS (SELECT 1 AS a)
            INSERT OVERWRITE DIRECTORY '{tmp_path}/victim' USING json SELECT * FROM x
        '''
        [step.fine]
        python = "steps.py:fine"
        [sink.out]
        from = "fine"
        parquet = "out"
    """
    steps = f"""
        def fine(people, spark):
            spark.sql("INSERT OVERWRITE DIRECTORY '{tmp_path}/victim' USING json SELECT 1 AS a")
            return people
    """
    declared = Declared(tmp_path, spark, spark_broker, text, steps__py=steps)
    told = "INSERT is a command, and a step must be a query, such as SELECT: nothing of it was executed"
    with pytest.raises(RunFailed) as caught:
        declared.run()
    assert str(caught.value) == f"{declared.file}:9: step evil: {told}"
    begin, end = text.index("[step.evil]"), text.index("[step.fine]")
    declared.write(text[:begin] + text[end:])
    with pytest.raises(RunFailed) as caught:
        declared.run()
    assert str(caught.value) == f"{declared.file}:7: step fine: {told}"
    assert (tmp_path / "victim" / "precious.txt").read_text() == "precious"
    assert not (tmp_path / "out").exists() and not (tmp_path / ".pipelines").exists()
