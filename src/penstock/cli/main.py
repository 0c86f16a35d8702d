"""The ``penstock`` command. Each subcommand's code is imported when it is called: ``--help`` must be quick."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence

from penstock import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    command: str = options.command
    if command == "serve":
        from penstock.cli.serve import serve

        return serve(options)
    from penstock.cli import config
    from penstock.cli.settings import load_settings
    from penstock.config.setting import ConfigError

    try:
        code = config.run(load_settings(options), all=options.all, json=options.json)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has seen enough, as in `penstock config --all | head`
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.close()  # or the interpreter would try again at its end, and complain
        return 0
    except ConfigError as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock", description="A Kafka that you pip install: a durable log broker for every Kafka client."
    )
    parser.add_argument("--version", action="version", version=f"penstock {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser(
        "serve",
        help="run a broker in the foreground",
        description="Run a broker in the foreground; Ctrl-C or SIGTERM stops it cleanly.",
        epilog="examples:\n"
        "  penstock serve\n"
        "  penstock serve --listen 0.0.0.0:9092 --advertise broker.example:9092 --data-dir /var/lib/penstock\n"
        "  penstock serve --set log.retention.hours=24 --set penstock.flush=interval\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    config = commands.add_parser(
        "config",
        help="print the effective settings and where each comes from",
        description="Print the effective settings and where each comes from.",
    )
    for command in (serve, config):
        _add_settings(command)
    config.add_argument("--all", action="store_true", help="the defaults too")
    config.add_argument("--json", action="store_true", help="for scripts")
    return parser


def _add_settings(command: argparse.ArgumentParser) -> None:
    settings = command.add_argument_group("settings", "each also as an environment variable PENSTOCK_*")
    settings.add_argument(
        "--listen", metavar="HOST:PORT", help="where to accept clients (127.0.0.1:9092); port 0 picks one"
    )
    settings.add_argument(
        "--advertise", metavar="HOST:PORT", help="the address that clients are told, if it is another one"
    )
    settings.add_argument("--data-dir", metavar="DIR", help="where the data is kept (penstock-data)")
    settings.add_argument("--broker-id", metavar="N", help="this broker's id (1)")
    settings.add_argument("--config", metavar="FILE", help="a TOML file of settings")
    settings.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="any setting by its name; may be repeated"
    )


if __name__ == "__main__":
    sys.exit(main())
