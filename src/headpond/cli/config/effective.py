"""From command-line options to the effective settings."""

from __future__ import annotations

import argparse

from headpond.config.effective import Effective
from headpond.config.sources import load
from headpond.runtime import environment

# Variables that begin with HEADPOND_ and are no settings of the broker.
OTHER_VARIABLES = ("HEADPOND_BOOTSTRAP_SERVER", "HEADPOND_COMMAND_CONFIG")


def load_settings(options: argparse.Namespace) -> Effective:
    """Raises ``ConfigError``: one sentence that says what to change."""
    flags = {
        "listen": options.listen,
        "advertise": options.advertise,
        "data-dir": options.data_dir,
        "broker-id": options.broker_id,
        "metrics-listen": options.metrics_listen,
        "log-level": options.log_level,
        "config": options.config,
    }
    return load(
        flags,
        options.set,
        environment.variables(),
        environment.read_file,
        hostname=environment.host_name(),
        other_variables=OTHER_VARIABLES,
    )
