"""A broker without a file descriptor left goes on for those who are connected."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from headpond.protocol.schema.describe_configs import DescribeConfigsRequest
from headpond.protocol.schema.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from headpond.protocol.schema.list_transactions import ListTransactionsRequest
from support.broker import BrokerProcess
from support.waiting import eventually
from support.wire import Wire

resource = pytest.importorskip("resource")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits of another process are Linux's")

BROKER = 4


def test_the_first_request_of_an_api_is_answered_when_no_file_can_be_opened(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    broker = make_broker(settings={"headpond.log.level": "debug"}).start()
    with Wire(broker.bootstrap_servers) as wire:
        eventually(lambda: "everything is imported" in broker.logs())
        _, hard = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (3, hard))
        wire.call(DescribeUserScramCredentialsRequest(users=None), 0)
        answer = wire.call(ListTransactionsRequest(), 2)
        assert answer.error_code == 0
        wanted = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=BROKER, resource_name="1", configuration_keys=None
        )
        answer = wire.call(DescribeConfigsRequest(resources=[wanted], include_documentation=True), 4)
        assert answer.results[0].configs[0].documentation
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (hard, hard))
