"""The clients by name; a library is imported when it is first chosen."""

from __future__ import annotations

from typing import Any

import pytest

from support.clients.base import Admin, Client

LIBRARIES = ("confluent", "kafka-python", "aiokafka")
CLIENTS = (*LIBRARIES, "kcat")


def make_client(name: str, bootstrap: str, **options: Any) -> Client:
    if name == "confluent":
        from support.clients.confluent import ConfluentClient

        return ConfluentClient(bootstrap, **options)
    if name == "kafka-python":
        from support.clients.kafka_python import KafkaPythonClient

        return KafkaPythonClient(bootstrap, **options)
    if name == "aiokafka":
        from support.clients.aio import AioClient

        return AioClient(bootstrap, **options)
    from support.clients.kcat import KcatClient, is_installed

    if not is_installed():
        pytest.skip("kcat is not installed and could not be (tests/support/install_debian.sh)")
    return KcatClient(bootstrap, **options)


def make_admin(name: str, bootstrap: str) -> Admin:
    if name == "confluent":
        from support.clients.confluent import ConfluentAdmin

        return ConfluentAdmin(bootstrap)
    if name == "kafka-python":
        from support.clients.kafka_python import KafkaPythonAdmin

        return KafkaPythonAdmin(bootstrap)
    from support.clients.aio import AioAdmin

    return AioAdmin(bootstrap)
