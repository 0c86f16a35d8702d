"""``headpond serve``: run a broker until a signal asks it to stop.

Exit codes: 0 after a stop that was asked for, before the broker was ready too; 1 when it could not start or its disk
failed; 2 for wrong settings.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys

from headpond import __version__
from headpond.broker.app import VITAL_TASKS, BrokerApp, Ports
from headpond.cli.common.failures import in_words
from headpond.cli.common.output import note
from headpond.cli.common.printable import printable
from headpond.cli.config.effective import load_settings
from headpond.cli.serve.banner import address_text, advertised, banner
from headpond.config.broker import BrokerSettings
from headpond.config.definition import ConfigError
from headpond.config.without_effect import unknown, without_effect
from headpond.model import BrokerError
from headpond.runtime import environment, process, service_manager
from headpond.runtime.clock import SystemClock
from headpond.runtime.code_files import KeptCodeFiles
from headpond.runtime.files import DiskFileSystem
from headpond.runtime.metastore_sqlite import SqliteMetadataStore, StoreUnusable
from headpond.runtime.network import TcpNetwork
from headpond.runtime.process_facts import process_facts
from headpond.runtime.processes import WorkerProcesses
from headpond.runtime.random import SystemRandom
from headpond.runtime.sync_process import SyncProcess
from headpond.runtime.tasks import LoopTasks
from headpond.runtime.workers import ThreadWorkers
from headpond.storage.errors import DataFolderUnusable
from headpond.storage.folder.names import METADATA_STORE
from headpond.storage.looks.looks import TURNS_AT_ONCE
from headpond.telemetry import logs

log = logging.getLogger("headpond")
lifecycle = logging.getLogger(logs.LIFECYCLE)


def serve(options: argparse.Namespace) -> int:
    try:
        effective = load_settings(options)
    except ConfigError as error:
        note(f"headpond: {error}")
        return 2
    settings = effective.settings
    logs.configure(format=settings.output.format, level=settings.output.level, stream=sys.stderr)
    if names := without_effect(effective.static):
        log.warning("settings without effect here: %s", ", ".join(names))
    if names := unknown(effective.static):
        log.warning("unknown settings, ignored: %s", "; ".join(names))
    process.prepare_process()
    return process.run(_serve(settings))


async def _serve(settings: BrokerSettings) -> int:
    clock = SystemClock()
    workers = ThreadWorkers()
    lookers = ThreadWorkers("headpond-look", threads_max=TURNS_AT_ONCE)
    fs = DiskFileSystem()
    processes = WorkerProcesses()
    syncer = SyncProcess(fs, workers)
    tasks = LoopTasks(on_failure=_task_failed)
    ports = Ports(
        clock=clock,
        random=SystemRandom(),
        fs=fs,
        workers=workers,
        lookers=lookers,
        processes=processes,
        syncer=syncer,
        tasks=tasks,
        network=TcpNetwork(backlog=settings.network.backlog),
        open_store=lambda folder: SqliteMetadataStore.open(f"{folder}/{METADATA_STORE}", clock),
        look_at_process=process_facts,
        code_files=KeptCodeFiles(),
    )
    app = BrokerApp(settings, ports, on_fatal=_disk_failed)
    stop, is_ready = asyncio.Event(), False

    def asked_to_stop(_: str) -> None:
        # A worker that reads a large log can't be called off, and need not be: a start may be interrupted anywhere, the
        # kernel releases the folder, and nothing is marked as clean that was not.
        if not is_ready:
            lifecycle.info("stopped before it was ready")
            environment.halt(0)
        stop.set()

    process.on_stop_signals(asked_to_stop)
    try:
        await app.start()
    except (BrokerError, DataFolderUnusable, OSError, StoreUnusable) as error:
        note(f"headpond: {in_words(error)}")
        return 1
    is_ready = True
    process.started()
    _say_ready(app, settings)
    status = f"STATUS=listening on {_addresses(app)}"
    told = service_manager.tell_in_the_end(service_manager.READY, status, sleep=clock.sleep, is_over=stop.is_set)
    tasks.spawn("tell the service manager", told)
    await stop.wait()
    service_manager.tell(service_manager.STOPPING)
    lifecycle.info("stopping")
    await app.stop()
    await processes.close()
    await syncer.close()
    await lookers.close()
    await workers.close()
    lifecycle.info("stopped")
    return 0


def _say_ready(app: BrokerApp, settings: BrokerSettings) -> None:
    """The line on stdout comes last: a program that waits for it finds everything else on stderr."""
    addresses = _addresses(app)
    if app.metrics_address is not None:
        where = address_text(*app.metrics_address)
        lifecycle.info("metrics on http://%s/metrics", where, extra={"address": where})
    if settings.output.format == "json":  # the lines for people would not be JSON
        extra = {
            "version": __version__,
            "addresses": addresses,
            "advertised": ", ".join(advertised(settings.network.listeners, app.addresses)),
            "broker_id": settings.broker_id,
        }
        lifecycle.info("listening on %s, data in %s", addresses, settings.storage.data_dir, extra=extra)
    else:
        note(banner(settings, app.addresses))
    print(printable(f"headpond {__version__} listening on {addresses}"), flush=True)


def _addresses(app: BrokerApp) -> str:
    return ", ".join(address_text(host, port) for host, port in app.addresses)


def _task_failed(name: str, error: BaseException) -> None:
    log.error("task %s failed", name, exc_info=error)
    if name in VITAL_TASKS:
        log.critical("the broker can't go on without it, ending now")
        environment.halt(1)


def _disk_failed(error: BaseException) -> None:
    """A failed fsync is final: end now, without the clean-shutdown marker, so that the next start checks the log."""
    log.critical("the data folder failed, ending now: %s", error)
    environment.halt(1)
