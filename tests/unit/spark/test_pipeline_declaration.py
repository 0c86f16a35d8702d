"""Declarations: what they mean, and every mistake with its file and line. No Spark, no broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from headpond.cli.main import main
from headpond.spark.pipeline.load import load_pipeline
from headpond.spark.pipeline.mistakes import WrongDeclaration
from headpond.spark.pipeline.options import read_options, write_options
from headpond.spark.pipeline.preflight import settings_for
from headpond.spark.reading.options import parse_options
from headpond.spark.sink.options import parse_sink_options
from unit.spark.declarations import VARIABLES, mistakes, written

GOOD = """\
name = "sessions"
trigger = "10 seconds"

[broker]
bootstrap = "${HOST}:9092"
[broker.options]
sasl.jaas.config = "user ${PASSWORD}"

[source.clicks]
topic = "clicks"
format = "json"
schema = "user STRING, at TIMESTAMP"
watermark = { column = "at", delay = "10 minutes" }

[step.counted]
sql = "SELECT user, count(*) AS n FROM clicks GROUP BY user, window(at, '1 hour')"

[sink.out]
from = "counted"
topic = "sessions"
"""


def changed(before: str, after: str) -> str:
    assert before in GOOD
    return GOOD.replace(before, after)


def test_a_declaration_says_what_is_read_done_and_written(tmp_path: Path) -> None:
    pipeline = load_pipeline(written(tmp_path, GOOD), VARIABLES)
    assert (pipeline.name, pipeline.trigger, pipeline.bootstrap) == ("sessions", "10 seconds", "10.0.0.1:9092")
    assert pipeline.kafka == {"kafka.sasl.jaas.config": "user pa55w0rd"}
    assert pipeline.folder == str(tmp_path / ".pipelines" / "sessions")
    (source,), (step,), (sink,) = pipeline.sources, pipeline.steps, pipeline.sinks
    assert (source.topics, source.reading, source.start, source.key) == (("clicks",), "stream", "earliest", "string")
    assert source.watermark is not None and source.watermark.delay == "10 minutes"
    assert (step.name, sink.kind, sink.target, sink.mode) == ("counted", "topic", "sessions", "append")
    assert pipeline.group_of(sink) == "sessions"


def test_folders_are_the_same_wherever_the_pipeline_is_run_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Spark Connect server works in a folder of its own, in which two users would meet."""
    text = changed('topic = "sessions"', 'parquet = "../out"')
    found = set()
    for user in ("anna", "bob"):
        (tmp_path / user / "pipelines").mkdir(parents=True)
        written(tmp_path / user / "pipelines", text)
        for cwd, file in ((tmp_path / user, "pipelines/p.toml"), (tmp_path / user / "pipelines", "p.toml")):
            monkeypatch.chdir(cwd)
            pipeline = load_pipeline(file, VARIABLES)
            found.add((pipeline.folder, pipeline.sinks[0].target))
            assert str(pipeline.place) == f"{file}:1"
    homes = (tmp_path / "anna", tmp_path / "bob")
    assert found == {(str(home / "pipelines/.pipelines/sessions"), str(home / "out")) for home in homes}
    remote = changed('topic = "sessions"', 'parquet = "s3a://bucket/out"')
    assert load_pipeline(written(tmp_path, remote), VARIABLES).sinks[0].target == "s3a://bucket/out"


def test_what_is_secret_is_known_and_not_shown(tmp_path: Path) -> None:
    pipeline = load_pipeline(written(tmp_path, GOOD), VARIABLES)
    assert {"pa55w0rd", "user pa55w0rd"} <= pipeline.secrets
    assert "10.0.0.1" not in pipeline.secrets


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            'name = "sessions"',
            'name = "a b"',
            ["p.toml:1: name is 'a b': letters, digits, dot, dash and underscore, up to 100"],
        ),
        ('name = "sessions"\n', "", ["p.toml:1: name is missing"]),
        ("trigger =", "triger =", ["p.toml:2: there is no key triger here (did you mean trigger?)"]),
        (
            '"10 seconds"',
            '"often"',
            ["p.toml:2: trigger is 'often', and should be 'once' or how often, such as '10 seconds'"],
        ),
        ("${HOST}", "${HOTS}", ["p.toml:5: broker: the environment has no variable HOTS"]),
        ("${HOST}", "${HOST", ["p.toml:5: broker: bootstrap has a ${ without a }"]),
        (
            'topic = "clicks"',
            "topic = 5",
            ["p.toml:10: source clicks: topic should be text, or a list of texts, and is the number 5"],
        ),
        ('topic = "clicks"\n', 'topic = "a/b"\n', ["p.toml:9: source clicks: invalid topic name 'a/b': *"]),
        (
            'format = "json"',
            'format = "jsn"',
            ["p.toml:11: source clicks: format is 'jsn', and should be one of * (did you mean json?)"],
        ),
        ('format = "json"\n', "", ["p.toml:9: source clicks: format is missing: json, csv, avro, string, binary"]),
        ("user STRING,", "user STRIN,", ["p.toml:12: source clicks: STRIN is no type for user (did you mean string?)"]),
        (
            "user STRING,",
            "_offset INT,",
            ["p.toml:12: source clicks: the column _offset has the name of one that every source has: *"],
        ),
        (
            'schema = "user STRING, at TIMESTAMP"',
            'schema_file = "no.ddl"',
            ["p.toml:12: source clicks: schema_file no.ddl can't be read: No such file or directory"],
        ),
        (
            'delay = "10 minutes"',
            'delay = "soon"',
            ["p.toml:13: source clicks: delay is 'soon', and should be a time such as '10 seconds' or '5 minutes'"],
        ),
        (
            'delay = "10 minutes"',
            'dely = "1 s"',
            [
                "p.toml:13: source clicks: delay is missing",
                "p.toml:13: source clicks: there is no key dely here (did you mean delay?)",
            ],
        ),
        (
            "FROM clicks GROUP",
            "FROM click GROUP",
            ["p.toml:16: step counted: reads from click, and there is no such source or step (did you mean clicks?)"],
        ),
        (
            "[step.counted]",
            "[step.clicks]",
            [
                "p.toml:15: step clicks: there is a source clicks already: names are for one of them",
                "p.toml:18: sink out: from is 'counted', and there is no such source or step",
            ],
        ),
        (
            'from = "counted"',
            'from = "countd"',
            ["p.toml:18: sink out: from is 'countd', and there is no such source or step (did you mean counted?)"],
        ),
        (
            'topic = "sessions"',
            'parquet = "t"\ntopic = "x"',
            ["p.toml:20: sink out: topic and parquet: give one of them"],
        ),
        (
            'topic = "sessions"',
            'topic = "clicks"',
            ["p.toml:18: sink out: topic clicks is what source clicks reads: it would never end"],
        ),
        (
            'topic = "clicks"\n',
            'pattern = "(clicks|sessions).*"\n',
            ["p.toml:18: sink out: topic sessions is what source clicks reads: it would never end"],
        ),
        (
            "[sink.out]",
            "[sink.dead-letters]",
            ["p.toml:18: sink dead-letters: the query of dead letters is called so: give it another name"],
        ),
        (
            'name = "sessions"',
            'name = "sessions"\nbad_records = { action = "dead-letter", topic = "clicks" }',
            ["p.toml:1: bad_records: topic clicks is what source clicks reads: bad records would come again and again"],
        ),
        (
            'topic = "sessions"',
            'topic = "x"\nmode = "complete"',
            ["p.toml:18: sink out: a topic can't be written in mode complete: every batch would repeat all of it"],
        ),
        (
            'topic = "sessions"',
            'parquet = "t"\nmode = "update"',
            ["p.toml:18: sink out: mode update needs upsert, the columns that say which row is replaced"],
        ),
        (
            'topic = "sessions"',
            'topic = "x"\npartitions = 0',
            ["p.toml:21: sink out: partitions should be a whole number, 1 or more, and is the number 0"],
        ),
        (
            'topic = "sessions"',
            'topic = "x"\npartitions = 3000000000',
            ["p.toml:21: sink out: partitions should be a whole number up to 2147483647, and is the number 3000000000"],
        ),
        (
            'topic = "clicks"',
            'topic = "clicks"\noptions.maxOffsetPerTrigger = 5',
            ["p.toml:9: source clicks: unknown option maxOffsetPerTrigger (did you mean maxOffsetsPerTrigger?)"],
        ),
        (
            'topic = "clicks"',
            'topic = "clicks"\noptions.subscribe = "y"',
            ["p.toml:9: source clicks: options can't have subscribe: it has a key of its own, or follows from one"],
        ),
        (
            'topic = "sessions"',
            'topic = "x"\noptions = { complession = "zstd", delivery = "sometimes" }',
            ["p.toml:18: sink out: unknown option complession (did you mean kafka.compression.type?)"],
        ),
        (
            'topic = "sessions"',
            'topic = "x"\noptions.delivery = "sometimes"',
            ["p.toml:18: sink out: delivery: 'sometimes' is neither exactly-once nor at-least-once"],
        ),
        (
            'topic = "sessions"',
            'topic = "x"\nmode = "update"\noptions.delivery = "at-least-once"',
            [
                "p.toml:18: sink out: delivery at-least-once can't be had in mode update, which is always exactly-once",
            ],
        ),
        (
            'topic = "sessions"',
            'topic = "x"\noptions.checkpointLocation = "elsewhere"',
            ["p.toml:18: sink out: options can't have checkpointLocation: it has a key of its own, or follows *"],
        ),
        (
            'topic = "sessions"',
            'parquet = "x"\noptions = { compresion = "zstd" }',
            ["p.toml:18: sink out: unknown option compresion (did you mean compression?)"],
        ),
        (
            'topic = "sessions"',
            'parquet = "x"\noptions = { compression = "zst" }',
            ["p.toml:18: sink out: compression: 'zst' is none of *"],
        ),
        (
            'topic = "sessions"',
            "console = true\noptions = { truncate = false }",
            ["p.toml:18: sink out: options have no effect on the console"],
        ),
        (
            "sasl.jaas.config =",
            'compression.type = "zstdd"\nsasl.jaas.config =',
            ["p.toml:19: sink out: kafka.compression.type: 'zstdd' is none of *"],
        ),
        (
            "sasl.jaas.config =",
            "fetch.max.byte = 5\nsasl.jaas.config =",
            ["p.toml:7: broker: unknown option kafka.fetch.max.byte (did you mean kafka.fetch.max.bytes?)"],
        ),
        (
            "sasl.jaas.config =",
            'acks = "all"\n"auto.offset.reset" = "latest"\nsasl.jaas.config =',
            ["p.toml:8: broker: kafka.auto.offset.reset can't be set: *"],
        ),
        (
            "sasl.jaas.config =",
            'bootstrap.servers = "other:9092"\nsasl.jaas.config =',
            ["p.toml:7: broker: options can't have bootstrap.servers: it has a key of its own, or follows from one"],
        ),
        ("[sink.out]\n", "[sink.out\n", ["p.toml:18: this is no TOML: *"]),
        ("[step.counted]", "[source.clicks]", ["p.toml:15: this is no TOML: *"]),
        (
            "[step.counted]\nsql = ",
            "[step.counted]\npython = ",
            ["p.toml:16: step counted: python is * and should be FILE.py:FUNCTION"],
        ),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_nearest_right_word(
    before: str, after: str, told: list[str], tmp_path: Path
) -> None:
    found = mistakes(tmp_path, changed(before, after))
    assert len(found) == len(told), found
    for one, expected in zip(found, told, strict=True):
        begin, _, end = expected.partition("*")
        assert one.startswith(begin) and one.endswith(end), one


def test_settings_of_the_broker_that_one_side_knows_are_not_told_to_the_other(tmp_path: Path) -> None:
    shared = (
        'default.api.timeout.ms = 5000\nmax.block.ms = 7000\nlinger.ms = 5\nmax.poll.records = 9\nclient.id = "c"\n'
    )
    letters = '[bad_records]\naction = "dead-letter"\n'
    text = changed("sasl.jaas.config =", f"{shared}sasl.jaas.config =") + letters
    pipeline = load_pipeline(written(tmp_path, text), VARIABLES)
    reading = read_options(pipeline, pipeline.sources[0], "h:1")
    writing = write_options(pipeline, "h:1", "sessions", pipeline.sinks[0].options)
    both = {"kafka.bootstrap.servers", "kafka.client.id", "kafka.sasl.jaas.config"}
    assert {name for name in reading if name.startswith("kafka.")} - both == {
        "kafka.default.api.timeout.ms",
        "kafka.max.poll.records",
    }
    assert {name for name in writing if name.startswith("kafka.")} - both == {"kafka.max.block.ms", "kafka.linger.ms"}
    assert both <= reading.keys() and both <= writing.keys()
    assert parse_options(reading, is_stream=True).client.api_timeout_s == 5
    assert parse_sink_options(writing, is_stream=True).client.api_timeout_s == 7
    assert settings_for(pipeline, "h:1", 3).api_timeout_s == 3


def test_what_the_sink_of_dead_letters_would_not_take_is_told(tmp_path: Path) -> None:
    text = changed('topic = "sessions"', "console = true") + '[bad_records]\naction = "dead-letter"\n'
    text = text.replace("sasl.jaas.config =", "acks = 1\nsasl.jaas.config =")
    assert mistakes(tmp_path, text) == [
        "p.toml:1: bad_records: kafka.acks can't be less than all: what is said to be written must stay written"
    ]


def test_all_mistakes_are_told_at_once_in_the_order_of_the_lines(tmp_path: Path) -> None:
    text = changed("user STRING", "user STRNG").replace('"10 seconds"', "5").replace("FROM clicks", "FROM x")
    assert [one.split(":")[1] for one in mistakes(tmp_path, text)] == ["2", "12", "16"]


def test_a_mistake_inside_of_a_long_text_has_the_line_that_it_is_on(tmp_path: Path) -> None:
    text = """\
    name = "x"
    [source.a]
    topic = "a"
    format = "json"
    schema = '''
      id INT,
      name STRNG
    '''
    [step.b]
    sql = \"\"\"
    SELECT *
    FROM a
    JOIN c\"\"\"
    [step.d]
    sql = \"\"\"SELECT *
    FROM b JOIN later\"\"\"
    [step.later]
    sql_file = "later.sql"
    [sink.s]
    from = "b"
    console = true
    """
    (tmp_path / "later.sql").write_text("\n-- why\nSELECT *\nFROM nowhere\n")
    assert mistakes(tmp_path, text) == [
        "later.sql:4: step later: reads from nowhere, and there is no such source or step",
        "p.toml:7: source a: STRNG is no type for name (did you mean string?)",
        "p.toml:13: step b: reads from c, and there is no such source or step",
        "p.toml:16: step d: reads from later, which is declared only after it",
    ]


def test_a_function_that_is_not_in_its_file_is_missed(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text("def counted(clicks):\n    return clicks\n")
    text = changed(GOOD[GOOD.index("sql = ") : GOOD.index("\n\n[sink")], 'python = "steps.py:count"')
    assert mistakes(tmp_path, text) == [
        "p.toml:16: step counted: steps.py has no function count (did you mean counted?)"
    ]


def test_avro_needs_a_schema_that_is_one(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text('{"type": "recrd"}')
    text = changed('format = "json"\nschema = "user STRING, at TIMESTAMP"', 'format = "avro"\nschema_file = "a.avsc"')
    assert mistakes(tmp_path, text) == ["p.toml:12: source clicks: a.avsc: the type 'recrd' is not declared"]


def test_a_file_that_is_not_there_and_one_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(WrongDeclaration, match=r"none\.toml:1: can't be read: No such file or directory"):
        load_pipeline(str(tmp_path / "none.toml"))
    assert mistakes(tmp_path, "", "p.txt") == [
        "p.txt:1: a pipeline is declared in a file that ends in .toml, .yaml or .py"
    ]


def test_validate_prints_every_mistake_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = written(tmp_path, GOOD.replace("${HOST}", "h").replace("${PASSWORD}", "p"), "good.toml")
    bad = written(tmp_path, 'name = "x"\nsorce.a.topic = 1\n', "bad.toml")
    assert main(["pipeline", "validate", good]) == 0
    assert capsys.readouterr().out == f"{good}: pipeline sessions is fine: 1 source, 1 step, 1 sink\n"
    assert main(["pipeline", "validate", good, bad]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"{bad}:1: there is no sink: [sink.NAME] declares one",
        f"{bad}:1: there is no source: [source.NAME] declares one",
        f"{bad}:2: there is no key sorce here (did you mean source?)",
    ]


def test_run_tells_the_first_mistake_and_how_many_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = written(tmp_path, 'name = "x"\n', "bad.toml")
    assert main(["pipeline", "run", bad]) == 1
    assert capsys.readouterr().err == (
        f"headpond: {bad}:1: there is no sink: [sink.NAME] declares one; "
        f"1 more mistake: headpond pipeline validate {bad}\n"
    )
