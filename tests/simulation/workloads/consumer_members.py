"""Members of a consumer group (KIP-848): the coordinator assigns. See ``churn`` and ``ownership``."""

from __future__ import annotations

from headpond.client.group.member import MemberSettings
from simulation.site import Site
from simulation.workloads.churn import Churn
from simulation.workloads.ownership import WatchedConsumerMember

GROUP = "consumer-members"
SETTINGS = MemberSettings(session_timeout_ms=3_000, rebalance_timeout_ms=4_000)
"""The session is the coordinator's, see ``plan``; heartbeats are as often as it says."""


async def be_consumer_members(site: Site) -> None:
    async with site.client() as client:
        await Churn(site, client, GROUP, WatchedConsumerMember, SETTINGS).run()
