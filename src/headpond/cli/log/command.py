"""``headpond log dump`` and ``headpond log verify``: what is in the files of a data folder, and whether it is sound.

Both only read, work while a broker runs, and know Kafka's files as well as ours: they are the same.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from headpond.cli.common.arguments import add_actions, add_json, describe
from headpond.cli.common.failures import FAILED, OK, CommandFailed, counted

if TYPE_CHECKING:
    from headpond.cli.log.verify import Report
    from headpond.ports import FileSystem

FOLDER_DEPTH_MAX = 2
"""Partitions' folders lie in data folders, and these beside each other; a link to a folder above has no end."""


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Print or verify the files of a data folder (Headpond's or Kafka's). Nothing is changed.",
        "headpond log dump headpond-data/orders-0 --records",
        "headpond log verify headpond-data",
    )
    actions = {
        "dump": ("print the contents of a file or a folder", _configure_dump),
        "verify": ("check files, partitions or a whole data folder", _configure_verify),
    }
    add_actions(parser, actions)


def _configure_dump(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Print the contents of a file of a data folder (.log, .index, .timeindex, .txnindex, .snapshot, checkpoints),\n"
        "or of all files in a folder. Everything is verified as it is read; faults are marked in the output, and the\n"
        "exit code is then 1.",
        "headpond log dump headpond-data/orders-0/00000000000000000000.log --records",
        "headpond log dump headpond-data/orders-0 --json | jq 'select(.kind == \"batch\")'",
    )
    parser.add_argument("path", metavar="FILE_OR_FOLDER", help="a file, or a folder with all its files")
    parser.add_argument("--records", action="store_true", help="also print the records of each batch")
    add_json(parser, "for scripts: one JSON object per line")
    parser.set_defaults(run=_dump)


def _configure_verify(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Check a data folder, a partition's folder or one file: CRCs, offsets, indexes against batches, leader\n"
        "epochs, checkpoints against logs. Each fault is reported; the exit code is 1 if there is one.",
        "headpond log verify headpond-data",
        "headpond log verify /var/lib/kafka/data/orders-0 --records --json",
    )
    parser.add_argument("path", metavar="FILE_OR_FOLDER", help="a data folder, a partition's folder, or one file")
    parser.add_argument("--records", action="store_true", help="also decode every record (slower)")
    add_json(parser)
    parser.set_defaults(run=_verify)


# --- dump -------------------------------------------------------------------------------------------------------------


def _dump(options: argparse.Namespace) -> int:
    from headpond.cli.common.progress import Progress
    from headpond.cli.log.files import EXPECTED, items, kind_of
    from headpond.cli.log.text import JsonPrinter, TextPrinter
    from headpond.runtime.files import DiskFileSystem

    fs = DiskFileSystem()
    path = _trimmed(fs, options.path)
    files = _files_below(fs, path) if fs.is_dir(path) else [path]
    known = [(file, kind) for file in files if (kind := kind_of(file.rpartition("/")[2])) is not None]
    if not known:
        what = f"there is no file of a broker in {path}" if fs.is_dir(path) else f"{path} is no file of a broker"
        raise CommandFailed(f"{what}: what can be read is {EXPECTED}")
    printer = (JsonPrinter if options.json else TextPrinter)()
    total = sum(_size_bytes(fs, file) for file, _ in known)
    with Progress("reading", total, unit="bytes", is_wanted=not printer.is_terminal) as bar:
        for file, kind in known:
            try:
                printer.file(file, kind)
                for item in items(fs, file, kind, with_records=options.records, advance=bar.advance):
                    printer.item(item)
            except OSError as error:
                if len(known) == 1 or isinstance(error, BrokenPipeError):
                    raise
                printer.unreadable(error)
    printer.finish()
    if printer.faults:
        raise CommandFailed(f"{counted(printer.faults, 'fault')} found in {path}: the lines marked with !! say where")
    return OK


def _files_below(fs: FileSystem, path: str, depth: int = 0) -> list[str]:
    found: list[str] = []
    for name in fs.list_dir(path):
        each = f"{path}/{name}"
        if not fs.is_dir(each):
            found.append(each)
        elif depth < FOLDER_DEPTH_MAX:
            found += _files_below(fs, each, depth + 1)
    return found


def _size_bytes(fs: FileSystem, path: str) -> int:
    """For the bar. What can't be read has none, and is told when its turn comes."""
    try:
        return fs.file_size(path)
    except OSError:
        return 0


# --- verify -----------------------------------------------------------------------------------------------------------


def _verify(options: argparse.Namespace) -> int:
    from headpond.cli.common.output import print_json
    from headpond.cli.common.progress import Progress
    from headpond.cli.log.files import EXPECTED, kind_of
    from headpond.cli.log.verify import Verifier, is_data_folder, is_partition_folder
    from headpond.runtime.files import DiskFileSystem

    fs = DiskFileSystem()
    path = _trimmed(fs, options.path)
    is_folder = fs.is_dir(path)
    is_partition = is_folder and is_partition_folder(fs, path)
    if not is_folder and kind_of(path.rpartition("/")[2]) is None:
        raise CommandFailed(f"{path} is no file of a broker: what can be verified is {EXPECTED}")
    if is_folder and not is_partition and not is_data_folder(fs, path):
        raise CommandFailed(f"{path} is neither a data folder nor a partition's: it has no meta.properties, no .log")
    files = _files_below(fs, path) if is_folder else [path]
    total = sum(_size_bytes(fs, file) for file in files)
    with Progress("verifying", total, unit="bytes") as bar:
        verifier = Verifier(fs, with_records=options.records, advance=bar.advance)
        if not is_folder:
            verifier.file(path)
        elif is_partition:
            verifier.partition(path)
        else:
            verifier.data_folder(path)
    report = verifier.report
    if options.json:
        print_json(report.as_json())
        return FAILED if report.faults else OK
    _print_report(report)
    if report.faults:
        raise CommandFailed(
            f"{counted(len(report.faults), 'fault')} found: an .index with its .timeindex may be deleted while the "
            "broker is down, they are rebuilt, and so is a damaged .txnindex that stays where it is; a batch can only "
            "come back from another copy"
        )
    return OK


def _print_report(report: Report) -> None:
    from headpond.cli.common.output import bytes_in_words, print_line

    for fault in report.faults:
        print_line(f"{fault.path}: {fault.what}")
    read = (
        f"{counted(report.files, 'file')}, {bytes_in_words(report.size_bytes)}, {counted(report.batches, 'batch')}, "
        f"{counted(report.records, 'record')}"
    )
    where = f"{counted(report.partitions, 'partition')}: " if report.partitions else ""
    faults = f"{'no' if not report.faults else len(report.faults)} fault{'s' * (len(report.faults) != 1)}"
    print_line(f"{where}{read}: {faults}")


def _trimmed(fs: FileSystem, path: str) -> str:
    """Without slashes at its end; a path that is not there is told at once."""
    if not fs.exists(path):
        raise CommandFailed(f"{path}: there is no such file or folder")
    return path.rstrip("/") or "/"
