"""The options of a write: what is obeyed, what is refused, and where the staging folder is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headpond.spark.kafka import option_names as names
from headpond.spark.kafka.errors import WrongOption
from headpond.spark.reading.options import parse_include_headers, parse_options
from headpond.spark.sink.addresses import shown
from headpond.spark.sink.errors import SinkFailed
from headpond.spark.sink.folders import staging_location
from headpond.spark.sink.options import SinkOptions, parse_sink_options

MINIMUM = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


def batch(**more: str) -> SinkOptions:
    return parse_sink_options({**MINIMUM, **more}, is_stream=False)


def stream(**more: str) -> SinkOptions:
    return parse_sink_options({**MINIMUM, **more}, is_stream=True)


def wrong(name: str, value: str, *, is_stream: bool = False, **more: str) -> str:
    with pytest.raises(WrongOption) as caught:
        parse_sink_options({**MINIMUM, **more, name: value}, is_stream=is_stream)
    return str(caught.value)


def test_the_defaults_are_exactly_once_and_kafkas() -> None:
    options = batch()
    assert (options.delivery, options.compression, options.level) == ("exactly-once", "none", None)
    assert (options.topic, options.app_id, options.version) == (None, None, None)
    assert options.transaction_timeout_ms == 300_000
    assert (options.delivery_timeout_s, options.client.api_timeout_s) == (120, 60)


def test_names_are_understood_in_any_case() -> None:
    options = batch(TOPIC="t", TxnAppID="a", txnversion="7", **{"KAFKA.Compression.Type": "ZSTD"})
    assert (options.topic, options.app_id, options.version, options.compression) == ("t", "a", 7, "zstd")


def test_a_codec_has_two_names_and_a_level_of_its_own() -> None:
    assert batch(compression="lz4").compression == "lz4"
    leveled = batch(compression="zstd", **{"kafka.compression.zstd.level": "7", "kafka.compression.gzip.level": "9"})
    assert leveled.level == 7
    assert "contradict" in wrong("compression", "lz4", **{"kafka.compression.type": "zstd"})
    assert wrong("compression", "brotli") == "kafka.compression.type: 'brotli' is none of none, gzip, snappy, lz4, zstd"
    assert "no whole number from 1 to 9" in wrong("kafka.compression.gzip.level", "10", compression="gzip")


@pytest.mark.parametrize("setting", names.SINK_IGNORED_SETTINGS)
def test_settings_of_the_java_producer_may_be_carried_along(setting: str) -> None:
    assert batch(**{f"kafka.{setting}": "1"}) == batch()


@pytest.mark.parametrize("setting", names.SINK_REFUSED_SETTINGS)
def test_settings_that_would_be_a_lie_are_refused(setting: str) -> None:
    assert wrong(f"kafka.{setting}", "x").startswith(f"kafka.{setting} can't be set: ")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("delivery", "perhaps", "delivery: 'perhaps' is neither exactly-once nor at-least-once"),
        ("kafka.acks", "1", "kafka.acks can't be less than all"),
        ("topic", " ", "topic is empty"),
        ("stagingDir", "", "stagingDir is empty"),
        ("stagingDirs", "x", "unknown option stagingDirs (did you mean stagingDir?)"),
        ("kafka.compresion.type", "x", "did you mean kafka.compression.type?"),
        ("path", "/x", "headpond writes to topics, not to paths: give the option topic, or a column topic"),
        ("subscribe", "t", "subscribe is an option of reading; where rows are written to is said by the option topic"),
        ("startingOffsets", "latest", "startingOffsets is an option of reading, and this is a write"),
        ("txnVersion", "1", "txnVersion is given without txnAppId: the two go together"),
        ("txnAppId", "a", "txnAppId is given without txnVersion: the two go together"),
        ("kafka.transaction.timeout.ms", "0", "is no whole number from 1"),
        ("kafka.security.protocol", "SASL_SSL", "kafka.sasl.mechanism is missing, which in Kafka means GSSAPI"),
        ("acks", "all", "unknown option acks (did you mean kafka.acks?)"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(name: str, value: str, said: str) -> None:
    found = wrong(name, value)
    assert said in found
    assert "\n" not in found


def test_versions_are_for_batches_that_are_written_exactly_once() -> None:
    assert "query id" in wrong("txnAppId", "a", is_stream=True)
    version = {"txnVersion": "1", "delivery": "at-least-once"}
    assert "contradict" in wrong("txnAppId", "a", **version)
    assert "200 are possible" in wrong("txnAppId", "a" * 201, txnVersion="1")
    assert "-1" in wrong("txnVersion", "-1", txnAppId="a")
    assert "neither refuse nor keep" in wrong("earlyTimestamps", "maybe")
    assert "neither skip nor fail" in wrong("txnOlder", "take", txnAppId="a", txnVersion="1")
    assert wrong("txnOlder", "fail") == "txnOlder is given without txnAppId: the two go together"
    assert "query id" in wrong("txnOlder", "fail", is_stream=True)


def test_reads_know_the_sinks_options_well_enough_to_refuse_them() -> None:
    for name in ("topic", "stagingDir", "checkpointLocation"):
        with pytest.raises(WrongOption, match=f"{name} is an option of writing"):
            parse_options({**MINIMUM, "subscribe": "t", name: "x"}, is_stream=False)
    assert parse_include_headers({**MINIMUM, "topic": "t", "stagingDir": "x", "includeHeaders": "true"})


# --- the staging folder -----------------------------------------------------------------------------------------------


def test_the_staging_folder_is_the_users_or_beside_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert staging_location(stream(stagingDir="/s", checkpointLocation="/c")) == "/s"
    assert staging_location(stream(stagingDir="s/t")) == str(tmp_path / "s/t")
    assert staging_location(stream(stagingDir="file:///s t")) == "/s t"
    assert staging_location(stream(stagingDir="file:/s")) == "/s"
    assert staging_location(stream(stagingDir="s3a://bucket/s")) == "s3a://bucket/s"
    assert staging_location(stream(checkpointLocation="/c/")) == "/c-staging"
    assert staging_location(stream(checkpointLocation="c")) == str(tmp_path / "c-staging")
    assert staging_location(stream(checkpointLocation="hdfs://n/c")) == "hdfs://n/c-staging"


def test_without_either_it_is_a_private_folder_among_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = Path(staging_location(batch()))
    assert found == tmp_path / f"headpond-staging-{os.getuid()}"
    assert found.stat().st_mode & 0o777 == 0o700
    found.chmod(0o755)
    with pytest.raises(SinkFailed, match="is not ours alone: give the option stagingDir"):
        staging_location(batch())


def test_a_staging_folder_that_arrow_does_not_know_is_refused_without_its_secrets() -> None:
    pytest.importorskip("pyarrow")
    from headpond.spark.sink.staging import Folder

    with pytest.raises(SinkFailed, match="give the option stagingDir") as caught:
        Folder("ftp://user:hush@host/x", "q")
    assert "hush" not in str(caught.value) and "user" not in str(caught.value)


@pytest.mark.parametrize("option", ["stagingDir", "checkpointLocation"])
@pytest.mark.parametrize(
    "address",
    [
        "s3://CANARY:CANARY@bucket/staging",
        "s3a://CANARY@bucket/staging",
        "S3://CANARY%3ACANARY@bucket",
        "s3://CANARY:CANARY/CANARY+CANARY@bucket/staging",
        "s3://CANARY:12/CANARY@bucket/staging",
        "hdfs://anna:CANARY@namenode:8020/staging",
        "hdfs://anna%3aCANARY@namenode/staging",
        "abfss://container:CANARY@account.dfs.core.windows.net/staging",
        "abfs://account.dfs.core.windows.net/container?client_id=a&client_secret=CANARY",
        "abfs://account.dfs.core.windows.net/container?sv=1&sig=CANARY",
    ],
)
def test_an_address_with_credentials_is_refused_in_a_sentence_that_shows_none_of_them(
    option: str, address: str
) -> None:
    said = wrong(option, address, is_stream=True)
    assert said.startswith(f"{option} has credentials in it") and "by their environment" in said
    assert "CANARY" not in said and "\n" not in said
    assert "CANARY" not in shown(address)


@pytest.mark.parametrize(
    ("address", "as_shown"),
    [
        ("s3://bucket/a:b@c", "s3://bucket/..."),
        ("s3://bucket?region=eu-west-1&scheme=https", "s3://bucket/..."),
        ("hdfs://[::1]:8020/staging", "hdfs://[::1]:8020/..."),
        ("hdfs://anna@namenode:8020/staging", "hdfs://namenode:8020/..."),
        ("abfss://container@account.dfs.core.windows.net/staging", "abfss://account.dfs.core.windows.net/..."),
        ("/a/b:c@d", "/a/b:c@d"),
    ],
)
def test_names_in_an_address_are_no_credentials_and_messages_leave_them_out(address: str, as_shown: str) -> None:
    assert stream(stagingDir=address).staging_dir == address
    assert shown(address) == as_shown


def test_an_address_that_is_none_is_not_repeated() -> None:
    pytest.importorskip("pyarrow")
    from headpond.spark.sink.staging import Folder

    with pytest.raises(SinkFailed, match=r"^the staging folder \.\.\. can't be used") as caught:
        Folder("CANARY:CANARY@bucket", "q")
    assert "CANARY" not in str(caught.value)
