"""What ``headpond pipeline status`` shows."""

from __future__ import annotations

import argparse
from typing import Any

from headpond.cli.common.failures import OK, CommandFailed, counted
from headpond.cli.common.output import Column, bytes_in_words, note, print_json, print_line, print_table, time_in_words
from headpond.cli.pipeline.security import with_command_config
from headpond.client import ClientError
from headpond.runtime.files import DiskFileSystem
from headpond.spark.pipeline.folder import STATUS, Folder
from headpond.spark.pipeline.load import load_pipeline
from headpond.spark.pipeline.mistakes import WrongDeclaration
from headpond.spark.pipeline.model import Pipeline
from headpond.spark.pipeline.preflight import lag_of, settings_for

FOLDERS = ".pipelines"


def show(options: argparse.Namespace) -> int:
    found = [_status_of(file, options) for file in options.files] if options.files else _all(options)
    if options.json:
        print_json(found)
        return OK
    if not found:
        print_line(f"there are no pipelines in {FOLDERS}: name the file of one")
    for status in found:
        _print(status)
    return OK


def _all(options: argparse.Namespace) -> list[dict[str, Any]]:
    fs = DiskFileSystem()
    names = sorted(fs.list_dir(FOLDERS)) if fs.is_dir(FOLDERS) else []
    paths = [f"{FOLDERS}/{name}" for name in names if fs.exists(f"{FOLDERS}/{name}/{STATUS}")]
    return [_read(Folder(path), None, options) for path in paths]


def _status_of(file: str, options: argparse.Namespace) -> dict[str, Any]:
    fs = DiskFileSystem()
    if fs.is_dir(file):
        return _read(Folder(file), None, options)
    try:
        pipeline = load_pipeline(file)
    except WrongDeclaration as error:
        raise CommandFailed(str(error.mistakes[0])) from None
    return _read(Folder(pipeline.folder), pipeline, options)


def _read(folder: Folder, pipeline: Pipeline | None, options: argparse.Namespace) -> dict[str, Any]:
    status = folder.read_status()
    if status is None:
        named = f"pipeline {pipeline.name}" if pipeline else folder.path
        raise CommandFailed(f"{named} has not run yet: there is no {folder.path}/{STATUS}")
    if pipeline is None:
        try:
            pipeline = load_pipeline(status["file"])
        except WrongDeclaration:
            return status  # the lag of its last batch will do
    settings = settings_for(with_command_config(pipeline, options), status["bootstrap"], options.timeout)
    try:
        for query in status["queries"]:
            lags = lag_of(settings, query["group"])
            if lags:
                query["lag"] = sum(lags.values())
    except ClientError as error:
        note(f"headpond: {status['pipeline']}: the lag is that of its last batch: {error}")
    return status


def _print(status: dict[str, Any]) -> None:
    since = time_in_words(status["updated_ms"] if status["state"] != "running" else status["started_ms"])
    print_line(f"{status['pipeline']}: {status['state']} since {since}, process {status['pid']} on {status['host']}")
    if status["reason"]:
        print_line(f"  {status['reason']}")
    columns = [
        *(Column("sink"), Column("batches", True), Column("rows in", True), Column("rows out", True)),
        *(Column("in/s", True), Column("batch ms", True), Column("lag", True), Column("state")),
    ]
    rows = [
        (
            *(query["name"], query["batches"], query["rows_read"], query["rows_written"]),
            *(f"{query['input_rows_per_s']:,.0f}", query["batch_ms"], "-" if query["lag"] is None else query["lag"]),
            _state(query),
        )
        for query in status["queries"]
    ]
    print_table(columns, rows)


def _state(query: dict[str, Any]) -> str:
    if not query["state_rows"]:
        return "-"
    return f"{counted(query['state_rows'], 'row')}, {bytes_in_words(query['state_bytes'])}"
