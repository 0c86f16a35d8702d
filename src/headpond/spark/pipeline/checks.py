"""What the parts of a pipeline must be to each other: names, who reads from whom, options that source and sink take."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headpond.model.nearest import did_you_mean
from headpond.spark.kafka.errors import WrongOption
from headpond.spark.pipeline.mistakes import Mistakes, Place
from headpond.spark.pipeline.model import DEAD_LETTERS, Pipeline, Sink, Source, Step
from headpond.spark.pipeline.options import (
    BOOTSTRAP_UNKNOWN,
    OF_THE_PIPELINE,
    check_sink_options,
    check_write,
    read_options,
)
from headpond.spark.pipeline.places import check_places
from headpond.spark.pipeline.sql_names import command_of, tables_of
from headpond.spark.reading.options import parse_options

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def check(pipeline: Pipeline, mistakes: Mistakes) -> None:
    _names(pipeline, mistakes)
    check_places(pipeline, mistakes)
    for source in pipeline.sources:
        _source(pipeline, source, mistakes)
    _steps(pipeline, mistakes)
    for sink in pipeline.sinks:
        _sink(pipeline, sink, mistakes)
    if pipeline.bad_records.are_kept:
        letters = pipeline.bad_records.topic
        _topic(letters, pipeline.place, "bad_records: ", mistakes)
        for source in pipeline.sources:
            if reads(source, letters):
                told = f"topic {letters} is what source {source.name} reads: bad records would come again and again"
                mistakes.add(pipeline.place, f"bad_records: {told}")
        if all(source.format.kind == "binary" for source in pipeline.sources):
            mistakes.add(pipeline.place, "bad_records: binary records are never bad, and there are no others")
        try:
            check_write(pipeline, letters, {})
        except WrongOption as error:
            mistakes.add(pipeline.place, f"bad_records: {error}")


def _names(pipeline: Pipeline, mistakes: Mistakes) -> None:
    seen: dict[str, str] = {}
    for kind, parts in (("source", pipeline.sources), ("step", pipeline.steps)):
        for part in parts:
            other = seen.setdefault(part.name.lower(), f"{kind} {part.name}")
            if other != f"{kind} {part.name}":
                mistakes.add(part.place, f"{kind} {part.name}: there is a {other} already: names are for one of them")
    if pipeline.sources and not any(source.is_stream for source in pipeline.sources):
        mistakes.add(pipeline.place, "no source is read as a stream: at least one should be, with read = 'stream'")


def _source(pipeline: Pipeline, source: Source, mistakes: Mistakes) -> None:
    what = f"source {source.name}: "
    if not source.topics and source.pattern is None:
        return  # told already
    for topic in source.topics:
        _topic(topic, source.place, what, mistakes)
    if source.watermark is not None and not source.is_stream:
        mistakes.add(source.place, f"{what}watermark is for streams, and this is read as a table")
    reserved = (
        *OF_THE_PIPELINE,
        "subscribe",
        "subscribepattern",
        "assign",
        "includeheaders",
    )
    for name in source.options:
        if name.lower() in reserved:
            mistakes.add(source.place, f"{what}options can't have {name}: it has a key of its own, or follows from one")
            return
    try:
        parse_options(
            read_options(pipeline, source, pipeline.bootstrap or BOOTSTRAP_UNKNOWN), is_stream=source.is_stream
        )
    except WrongOption as error:
        mistakes.add(source.place, f"{what}{error}")


def _steps(pipeline: Pipeline, mistakes: Mistakes) -> None:
    known = [source.name for source in pipeline.sources]
    later = [step.name for step in pipeline.steps]
    for step in pipeline.steps:
        _tables(step, known, later, mistakes)
        known.append(step.name)


def _tables(step: Step, known: Sequence[str], later: Sequence[str], mistakes: Mistakes) -> None:
    if step.sql is None or step.sql_place is None:
        return
    if (command := command_of(step.sql)) is not None:
        told = f"{command} is a command, and a step must be a query, such as SELECT"
        mistakes.add(step.sql_place, f"step {step.name}: {told}")
        return
    lowered = {name.lower() for name in known}
    for table in tables_of(step.sql):
        if table.name.lower() in lowered:
            continue
        place = step.sql_place.below(table.line)
        if table.name.lower() in {name.lower() for name in later}:
            told = f"reads from {table.name}, which is declared only after it"
        else:
            told = f"reads from {table.name}, and there is no such source or step{did_you_mean(table.name, known)}"
        mistakes.add(place, f"step {step.name}: {told}")


def _sink(pipeline: Pipeline, sink: Sink, mistakes: Mistakes) -> None:
    what = f"sink {sink.name}: "
    if sink.name == DEAD_LETTERS:
        mistakes.add(sink.place, f"{what}the query of dead letters is called so: give it another name")
    known = [source.name for source in pipeline.sources] + [step.name for step in pipeline.steps]
    if sink.input and sink.input.lower() not in {name.lower() for name in known}:
        mistakes.add(
            sink.place,
            f"{what}from is {sink.input!r}, and there is no such source or step{did_you_mean(sink.input, known)}",
        )
    if sink.kind == "topic":
        _topic(sink.target, sink.place, what, mistakes)
        if sink.mode == "complete":
            mistakes.add(
                sink.place, f"{what}a topic can't be written in mode complete: every batch would repeat all of it"
            )
        for source in pipeline.sources:
            if reads(source, sink.target) and source.is_stream:
                mistakes.add(
                    sink.place, f"{what}topic {sink.target} is what source {source.name} reads: it would never end"
                )
    elif sink.kind == "parquet":
        if sink.mode != "append" and not sink.upsert:
            mistakes.add(sink.place, f"{what}mode {sink.mode} needs upsert, the columns that say which row is replaced")
        for key in ("order_by", "delete_when"):
            if getattr(sink, key) and not sink.upsert:
                mistakes.add(sink.place, f"{what}{key} has no effect without upsert")
        if sink.upsert and sink.partition_by:
            mistakes.add(sink.place, f"{what}a table with upsert can't have partition_by")
    try:
        check_sink_options(pipeline, sink)
    except WrongOption as error:
        mistakes.add(sink.place, f"{what}{error}")


def reads(source: Source, topic: str) -> bool:
    """Whether it is one of the topics of a source."""
    if source.pattern is None:
        return topic in source.topics
    try:
        return bool(topic) and re.fullmatch(source.pattern, topic) is not None
    except re.error:
        return False  # told as a mistake of the source's


def _topic(name: str, place: Place, what: str, mistakes: Mistakes) -> None:
    if name and (not _TOPIC.fullmatch(name) or name in (".", "..")):
        mistakes.add(place, f"{what}invalid topic name {name!r}: 1-249 letters, digits, dots, dashes and underscores")
