"""Members of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup. See ``churn`` and ``ownership``."""

from __future__ import annotations

from headpond.client.group.member import MemberSettings
from simulation.site import Site
from simulation.workloads.churn import Churn
from simulation.workloads.ownership import WatchedClassicMember

GROUP = "classic-members"
SETTINGS = MemberSettings(
    session_timeout_ms=2_500, rebalance_timeout_ms=4_000, heartbeat_interval_ms=600, metadata_max_age_ms=3_000
)
"""Short: several rebalances, and several sessions that end, in the time of a run."""


async def be_classic_members(site: Site) -> None:
    async with site.client() as client:
        await Churn(site, client, GROUP, WatchedClassicMember, SETTINGS).run()
