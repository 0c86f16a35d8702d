"""The options that stand for settings of a broker, shared by ``serve`` and ``config``."""

from __future__ import annotations

import argparse


def add_settings(command: argparse.ArgumentParser) -> None:
    settings = command.add_argument_group("settings", "each can also be given as an environment variable HEADPOND_*")
    settings.add_argument(
        "--listen", metavar="HOST:PORT", help="address for clients (default 127.0.0.1:9092); port 0 picks a free one"
    )
    settings.add_argument(
        "--advertise", metavar="HOST:PORT", help="address that clients are told, if it differs from --listen"
    )
    settings.add_argument("--data-dir", metavar="DIR", help="data folder (default headpond-data)")
    settings.add_argument("--broker-id", metavar="N", help="id of this broker (default 1)")
    settings.add_argument(
        "--metrics-listen", metavar="HOST:PORT", help="serve Prometheus metrics and health checks here (default off)"
    )
    settings.add_argument("--log-level", metavar="LEVEL", help="log level: error, warning (default), info or debug")
    settings.add_argument("--config", metavar="FILE", help="settings file: TOML, or Kafka's server.properties")
    settings.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="any setting by its name; repeatable"
    )
