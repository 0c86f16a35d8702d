"""The options of a write, parsed once. Raises ``WrongOption``, as for reads.

options = parse_sink_options({"kafka.bootstrap.servers": "...", "topic": "orders"}, is_stream=True)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from headpond.protocol.records.compression import CODEC_NAMES
from headpond.spark.kafka import option_names as names
from headpond.spark.kafka.client_settings import ClientSettings, read_bootstrap
from headpond.spark.kafka.errors import WrongOption
from headpond.spark.kafka.given_options import Given
from headpond.spark.kafka.option_values import INT_MAX, LONG_MAX
from headpond.spark.sink.addresses import holds_credentials

Delivery = Literal["exactly-once", "at-least-once"]

TRANSACTION_TIMEOUT_MS = 300_000
"""A batch is written within it, or not at all; a driver that died holds up readers no longer than this."""
LEVELS = {"gzip": (1, 9), "lz4": (1, 17), "zstd": (-131_072, 22)}
NAME_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class SinkOptions:
    client: ClientSettings
    topic: str | None = None
    """For all rows; None: the column says it."""
    staging_dir: str | None = None
    checkpoint: str | None = None
    delivery: Delivery = "exactly-once"
    app_id: str | None = None
    version: int | None = None
    """Of the application's write: what was written with this number is not written again."""
    skips_older: bool = True
    """Whether a number below the last that was written counts as written, too; else it is refused."""
    keeps_early_timestamps: bool = False
    """Whether times before 1970 are written; else they are refused, as by Kafka's producers."""
    compression: str = "none"
    level: int | None = None
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    delivery_timeout_s: float = 120.0


def parse_sink_options(given: Mapping[str, str], *, is_stream: bool) -> SinkOptions:
    options = Given(given, names.WRITING)
    options.truth(names.INCLUDE_HEADERS, True)  # the connector's; headers are written if there is a column of them
    _check_acks(options)
    delivery = _delivery(options)
    if is_stream:
        options.refuse(
            (names.TXN_APP_ID, names.TXN_VERSION, names.TXN_OLDER), "a stream has its query id and batch ids instead"
        )
    app_id, version = _application(options)
    if delivery == "at-least-once" and app_id is not None:
        raise WrongOption("txnAppId and delivery at-least-once contradict each other: give one of them")
    compression = _compression(options)
    return SinkOptions(
        client=_client(options),
        topic=_text(options, names.TOPIC),
        staging_dir=_place(options, names.STAGING_DIR),
        checkpoint=_place(options, names.CHECKPOINT_LOCATION),
        delivery=delivery,
        app_id=app_id,
        version=version,
        skips_older=_skips_older(options, app_id),
        keeps_early_timestamps=_keeps_early_timestamps(options),
        compression=compression,
        level=_level(options, compression),
        transaction_timeout_ms=options.number_setting(
            names.TRANSACTION_TIMEOUT, TRANSACTION_TIMEOUT_MS, at_least=1, at_most=INT_MAX
        ),
        delivery_timeout_s=options.number_setting(names.DELIVERY_TIMEOUT, 120_000, at_least=1, at_most=INT_MAX) / 1_000,
    )


def _client(options: Given) -> ClientSettings:
    bootstrap = read_bootstrap(options)
    patience_ms = options.number_setting(names.MAX_BLOCK, 60_000, at_least=1, at_most=INT_MAX)
    client_id = options.setting(names.CLIENT_ID) or ClientSettings(bootstrap).client_id
    return ClientSettings(
        bootstrap, client_id=client_id, api_timeout_s=patience_ms / 1_000, security=options.security()
    )


def _check_acks(options: Given) -> None:
    if (options.setting(names.ACKS) or "all").strip().lower() not in ("all", "-1"):
        raise WrongOption("kafka.acks can't be less than all: what is said to be written must stay written")


def _delivery(options: Given) -> Delivery:
    text = (options.get(names.DELIVERY) or "exactly-once").strip().lower()
    for one in get_args(Delivery):
        if text == one:
            return one
    raise WrongOption(f"delivery: {text!r} is neither exactly-once nor at-least-once")


def _application(options: Given) -> tuple[str | None, int | None]:
    app_id = _text(options, names.TXN_APP_ID)
    version = options.number(names.TXN_VERSION, at_least=0, at_most=LONG_MAX)
    if (app_id is None) != (version is None):
        there, missing = (
            (names.TXN_APP_ID, names.TXN_VERSION) if version is None else (names.TXN_VERSION, names.TXN_APP_ID)
        )
        raise WrongOption(f"{there} is given without {missing}: the two go together")
    if app_id is not None and len(app_id) > NAME_CHARS_MAX:
        raise WrongOption(f"txnAppId has {len(app_id)} characters; {NAME_CHARS_MAX} are possible")
    return app_id, version


def _skips_older(options: Given, app_id: str | None) -> bool:
    text = (options.get(names.TXN_OLDER) or "").strip().lower()
    if text and app_id is None:
        raise WrongOption(f"{names.TXN_OLDER} is given without {names.TXN_APP_ID}: the two go together")
    if text not in ("", "skip", "fail"):
        raise WrongOption(f"{names.TXN_OLDER}: {text!r} is neither skip nor fail")
    return text != "fail"


def _keeps_early_timestamps(options: Given) -> bool:
    text = (options.get(names.EARLY_TIMESTAMPS) or "refuse").strip().lower()
    if text not in ("refuse", "keep"):
        raise WrongOption(f"{names.EARLY_TIMESTAMPS}: {text!r} is neither refuse nor keep")
    return text == "keep"


def _text(options: Given, name: str) -> str | None:
    text = options.get(name)
    if text is not None and not text.strip():
        raise WrongOption(f"{name} is empty")
    return None if text is None else text.strip()


def _place(options: Given, name: str) -> str | None:
    """A path or an address; one with credentials is not repeated in what is said about it."""
    location = _text(options, name)
    if location is not None and holds_credentials(location):
        raise WrongOption(
            f"{name} has credentials in it, which Spark's plans and logs would show: leave them out of the address, "
            "and give them to driver and executors by their environment (for s3: AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, a profile, or a role)"
        )
    return location


def _compression(options: Given) -> str:
    text = (options.setting(names.COMPRESSION_TYPE) or "none").strip().lower()
    if text not in CODEC_NAMES:
        raise WrongOption(f"kafka.compression.type: {text!r} is none of {', '.join(CODEC_NAMES)}")
    return text


def _level(options: Given, compression: str) -> int | None:
    if compression not in LEVELS:
        return None
    name = names.COMPRESSION_LEVELS[compression]
    if options.setting(name) is None:
        return None
    at_least, at_most = LEVELS[compression]
    return options.number_setting(name, 0, at_least=at_least, at_most=at_most)
