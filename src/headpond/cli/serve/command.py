"""``headpond serve`` on the command line; ``run.py`` does it."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import describe
from headpond.cli.config.options import add_settings


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Run a broker in the foreground; Ctrl-C or SIGTERM stops it cleanly (exit code 0).",
        "headpond serve",
        "headpond serve --listen 0.0.0.0:9092 --advertise broker.example:9092 --data-dir /var/lib/headpond",
        "headpond serve --set log.retention.hours=24 --set headpond.flush=interval",
        "headpond serve --config server.properties --log-level info",
    )
    add_settings(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.serve.run import serve

    return serve(options)
