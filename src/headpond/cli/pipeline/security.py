"""Whether a declaration says how its broker lets it in, or the command does."""

from __future__ import annotations

import argparse
from dataclasses import replace

from headpond.cli.common.command_config import KAFKA, is_asked_for, kafka_options
from headpond.client.security_settings import is_secret, is_security
from headpond.spark.pipeline.model import Pipeline


def with_command_config(pipeline: Pipeline, options: argparse.Namespace) -> Pipeline:
    """The option goes before the declaration, and that before the variable: all of it, for a name from here and a
    password from there would be nobody's."""
    given = kafka_options(options)
    own = [name for name in pipeline.kafka if is_security(name.lower().removeprefix(KAFKA))]
    if not given or (own and not is_asked_for(options)):
        return pipeline
    kept = {name: value for name, value in pipeline.kafka.items() if name not in own}
    secrets = {value for name, value in given.items() if value and is_secret(name)}
    return replace(pipeline, kafka={**kept, **given}, secrets=pipeline.secrets | secrets)
