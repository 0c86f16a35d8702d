"""``headpond adopt``: partition folders that a Kafka wrote become topics of the (stopped) broker."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from headpond.cli.common.arguments import describe
from headpond.cli.common.failures import FAILED, INTERRUPTED, OK, TERMINATED, CommandFailed, counted
from headpond.cli.config.options import add_settings

if TYPE_CHECKING:
    from headpond.broker.start.adoption import Candidate
    from headpond.config.broker import BrokerSettings


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Turn partition folders that the broker does not know (copied into its data folder from a stopped Kafka or "
        "from a backup) into topics. Each batch is read and checked first; a topic with a fault is left alone. The "
        "broker must not be running. Adopted topics keep all records until you set their retention.",
        "headpond adopt --dry-run",
        "headpond adopt",
        "headpond adopt orders payments --data-dir /var/lib/headpond",
    )
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="topics to adopt (default: all that are found)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be adopted, and change nothing")
    parser.add_argument("--json", action="store_true", help="for scripts: one JSON document on stdout")
    add_settings(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.config.effective import load_settings
    from headpond.model import BrokerError
    from headpond.runtime import process
    from headpond.runtime.files import DiskFileSystem
    from headpond.runtime.metastore_sqlite import StoreUnusable
    from headpond.storage.errors import DataFolderUnusable

    settings = load_settings(options).settings
    if not DiskFileSystem().is_dir(settings.storage.data_dir):  # looking must not make one
        raise CommandFailed(f"{settings.storage.data_dir}: there is no such folder; --data-dir names another")
    try:
        found = process.run(_adopt(settings, options))
    except (BrokerError, DataFolderUnusable, StoreUnusable) as error:
        raise CommandFailed(str(error)) from error
    _show(found, options, settings.storage.data_dir)
    missing = sorted(set(options.topics) - {each.name for each in found})
    if missing:
        raise CommandFailed(f"no folders of {', '.join(missing)} that the broker does not know already")
    if not found and not options.json:
        raise CommandFailed(f"{settings.storage.data_dir} holds no partition folder that the broker does not know")
    return FAILED if any(each.refused for each in found) else OK


async def _adopt(settings: BrokerSettings, options: argparse.Namespace) -> list[Candidate]:
    from headpond.broker.start.adoption import AdoptionPorts, adopt
    from headpond.cli.common.progress import Progress
    from headpond.runtime import environment, process
    from headpond.runtime.clock import SystemClock
    from headpond.runtime.files import DiskFileSystem
    from headpond.runtime.metastore_copy import copy_to_look_into
    from headpond.runtime.metastore_sqlite import SqliteMetadataStore
    from headpond.runtime.random import SystemRandom
    from headpond.runtime.tasks import LoopTasks
    from headpond.runtime.workers import ThreadWorkers
    from headpond.storage.folder.names import METADATA_STORE

    # A folder is read to its end by a worker that can't be called off. A crash at any point leaves each topic adopted
    # or untouched, and so does this.
    process.on_stop_signals(lambda name: environment.halt(INTERRUPTED if name == "SIGINT" else TERMINATED))
    clock, workers = SystemClock(), ThreadWorkers()
    failures: list[BaseException] = []
    bar: Progress | None = None

    def on_read(size_bytes: int, total_bytes: int) -> None:
        nonlocal bar
        if bar is None:
            bar = Progress("Checking", total_bytes, unit="bytes").__enter__()
        bar.advance(size_bytes)

    own_file = f"{settings.storage.data_dir}/{METADATA_STORE}"
    try:
        with copy_to_look_into(own_file) if options.dry_run else nullcontext(own_file) as store_file:
            ports = AdoptionPorts(
                clock=clock,
                random=SystemRandom(),
                fs=DiskFileSystem(),
                workers=workers,
                tasks=LoopTasks(on_failure=lambda name, error: failures.append(error)),
                open_store=lambda folder: SqliteMetadataStore.open(store_file, clock),
            )
            found = await adopt(
                settings, ports, topics=set(options.topics) or None, dry_run=options.dry_run, on_read=on_read
            )
    finally:
        if bar is not None:
            bar.__exit__(None, None, None)
        await workers.close()
    if failures:
        raise CommandFailed(f"it did not end well, start the broker to recover: {failures[0]}")
    return found


def _show(found: list[Candidate], options: argparse.Namespace, data_dir: str) -> None:
    from headpond.cli.common.output import Column, bytes_in_words, note, print_json, print_table

    done = "would be adopted" if options.dry_run else "adopted"
    if options.json:
        print_json([_document(each, adopted=each.refused is None and not options.dry_run) for each in found])
        return
    if not found:
        return
    columns = (
        Column("topic"),
        Column("partitions", True),
        Column("offsets", True),
        Column("size", True),
        Column("result"),
    )
    print_table(
        columns,
        [
            (
                each.name,
                len(each.folders),
                sum(folder.end_offset - folder.start_offset for folder in each.folders),
                bytes_in_words(sum(folder.size_bytes for folder in each.folders)),
                f"left alone: {each.refused}" if each.refused else done,
            )
            for each in found
        ],
    )
    torn = [folder for each in found for folder in each.folders if folder.torn_bytes and not each.refused]
    for folder in torn:
        cut = "would be" if options.dry_run else "were"
        note(
            f"{folder.tp}: {folder.torn_bytes} bytes behind offset {folder.end_offset} are no whole batch "
            f"and {cut} cut off"
        )
    count = sum(each.refused is None for each in found)
    if count and not options.dry_run:
        note(f"{counted(count, 'topic')} adopted in {data_dir}; they keep everything until you set retention.ms")


def _document(each: Candidate, *, adopted: bool) -> dict[str, Any]:
    return {
        "topic": each.name,
        "adopted": adopted,
        "refused": each.refused,
        "partitions": [
            {
                "partition": folder.tp.partition,
                "start_offset": folder.start_offset,
                "end_offset": folder.end_offset,
                "size_bytes": folder.size_bytes,
                "segments": folder.segments,
                "leader_epoch": folder.leader_epoch,
                "torn_bytes": folder.torn_bytes,
            }
            for folder in each.folders
        ],
    }
