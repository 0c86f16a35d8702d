"""The options that reads and writes of a pipeline are given, and what is wrong with those that a sink declares.

The settings of ``[broker.options]`` are for both sides. One that only the consumer knows, such as
``default.api.timeout.ms``, is not told to sinks, nor one that only the producer knows to sources.
"""

from __future__ import annotations

from collections.abc import Mapping

from headpond.client.security_settings import is_security
from headpond.model.nearest import did_you_mean
from headpond.spark.kafka import option_names as names
from headpond.spark.kafka.errors import WrongOption
from headpond.spark.kafka.given_options import Given
from headpond.spark.kafka.option_names import KAFKA, READING, READING_OR_WRITING, WRITING, Vocabulary
from headpond.spark.pipeline.model import Pipeline, Sink, Source
from headpond.spark.sink.options import parse_sink_options

BOOTSTRAP_UNKNOWN = "127.0.0.1:9092"
"""Stands in while options are checked: which broker it is does not matter to that."""
OF_THE_PIPELINE = (f"{KAFKA}{names.BOOTSTRAP_SERVERS}", f"{KAFKA}{names.GROUP_ID}")
"""Settings that have keys of their own, or follow from them."""
_OF_A_SINK = (f"{KAFKA}{names.BOOTSTRAP_SERVERS}", names.TOPIC, names.CHECKPOINT_LOCATION, names.QUERY_NAME, "path")
_OF_TABLES = ("compression", "maxRecordsPerFile", "retention")
"""What Spark's file sink and its writer of Parquet know, beside names with a dot: those are Hadoop's and Parquet's."""
_TABLE_CODECS = ("none", "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "zstd")


def read_options(pipeline: Pipeline, source: Source, bootstrap: str) -> dict[str, str]:
    """The options of a source's read, but for the group."""
    shared = _known_to(READING, pipeline.kafka)
    given = {f"{KAFKA}{names.BOOTSTRAP_SERVERS}": bootstrap, **shared, **source.options}
    if source.pattern is not None:
        given["subscribePattern"] = source.pattern
    else:
        given["subscribe"] = ",".join(source.topics)
    if source.is_stream and not any(name.lower().startswith("starting") for name in source.options):
        given["startingOffsets"] = source.start
    if source.with_headers:
        given["includeHeaders"] = "true"
    return given


def write_options(pipeline: Pipeline, bootstrap: str, topic: str, more: Mapping[str, str]) -> dict[str, str]:
    """The options of a write to a topic, but for where it is staged. ``more``: the sink's own."""
    shared = _known_to(WRITING, pipeline.kafka)
    return {f"{KAFKA}{names.BOOTSTRAP_SERVERS}": bootstrap, **shared, **more, names.TOPIC: topic}


def client_options(pipeline: Pipeline, bootstrap: str) -> dict[str, str]:
    """Of a client that only asks, as a read that reads nothing."""
    return {**_known_to(READING, pipeline.kafka), f"{KAFKA}{names.BOOTSTRAP_SERVERS}": bootstrap, "subscribe": "any"}


def check_shared(setting: str, value: str) -> None:
    """``WrongOption`` for a setting of ``[broker.options]``, with ``kafka.`` before it, that neither side takes."""
    if setting in OF_THE_PIPELINE:
        raise WrongOption(
            f"options can't have {setting.removeprefix(KAFKA)}: it has a key of its own, or follows from one"
        )
    Given({setting: value}, READING_OR_WRITING)


def check_sink_options(pipeline: Pipeline, sink: Sink) -> None:
    """``WrongOption`` for what the sink would not take, or would not obey."""
    reserved = {name.lower() for name in _OF_A_SINK}
    for name in sink.options:
        if name.lower() in reserved:
            raise WrongOption(f"options can't have {name}: it has a key of its own, or follows from one")
    if sink.kind == "topic":
        check_write(pipeline, sink.target, sink.options)
        _check_updates(sink)
    elif sink.options and (sink.kind == "console" or sink.upsert):
        raise WrongOption(f"options have no effect {'with upsert' if sink.upsert else 'on the console'}")
    else:
        _check_table(sink.options)


def check_write(pipeline: Pipeline, topic: str, more: Mapping[str, str]) -> None:
    given = write_options(pipeline, pipeline.bootstrap or BOOTSTRAP_UNKNOWN, topic or "any", more)
    parse_sink_options(given, is_stream=True)


def _check_updates(sink: Sink) -> None:
    """Mode update has each batch written under a number, which is what at-least-once does without."""
    given = next((value for name, value in sink.options.items() if name.lower() == names.DELIVERY), "")
    if sink.mode == "update" and given.strip().lower() == "at-least-once":
        raise WrongOption("delivery at-least-once can't be had in mode update, which is always exactly-once")


def _check_table(options: Mapping[str, str]) -> None:
    by_lower = {name.lower(): name for name in _OF_TABLES}
    for name, value in options.items():
        known = by_lower.get(name.lower())
        if known is None and "." not in name:
            raise WrongOption(f"unknown option {name}{did_you_mean(name, _OF_TABLES)}")
        if known == "compression" and value.lower() not in _TABLE_CODECS:
            raise WrongOption(f"compression: {value!r} is none of {', '.join(_TABLE_CODECS)}")
        if known == "maxRecordsPerFile" and not (value.isascii() and value.isdigit()):
            raise WrongOption(f"maxRecordsPerFile: {value!r} is no whole number")


def _known_to(side: Vocabulary, kafka: Mapping[str, str]) -> dict[str, str]:
    """Without those that only the other side knows; one that nobody knows stays, to be refused."""
    other = WRITING if side is READING else READING
    return {name: value for name, value in kafka.items() if _knows(side, name) or not _knows(other, name)}


def _knows(side: Vocabulary, name: str) -> bool:
    setting = name.lower().removeprefix(KAFKA)
    return setting in (*side.obeyed, *side.ignored) or setting in side.refused or is_security(setting)
