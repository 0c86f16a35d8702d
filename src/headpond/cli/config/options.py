"""The options that stand for settings of a broker, shared by ``serve`` and ``config``."""

from __future__ import annotations

import argparse


def add_settings(command: argparse.ArgumentParser) -> None:
    settings = command.add_argument_group("settings", "each also as an environment variable HEADPOND_*")
    settings.add_argument(
        "--listen", metavar="HOST:PORT", help="where to accept clients (127.0.0.1:9092); port 0 picks one"
    )
    settings.add_argument(
        "--advertise", metavar="HOST:PORT", help="the address that clients are told, if it is another one"
    )
    settings.add_argument("--data-dir", metavar="DIR", help="where the data is kept (headpond-data)")
    settings.add_argument("--broker-id", metavar="N", help="this broker's id (1)")
    settings.add_argument(
        "--metrics-listen", metavar="HOST:PORT", help="serve Prometheus metrics and health checks there (off)"
    )
    settings.add_argument(
        "--log-level", metavar="LEVEL", help="what is logged at least: error, warning (default), info or debug"
    )
    settings.add_argument("--config", metavar="FILE", help="a file of settings: TOML, or Kafka's server.properties")
    settings.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="any setting by its name; may be repeated"
    )
