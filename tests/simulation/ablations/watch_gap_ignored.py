"""When the store has forgotten what came after the image's revision, the image skips to the present one.

Promise  every revision of the metadata is applied, once and in order.
Found    a watch that is silent while topics come and go, and a store that forgets its history meanwhile.
"""

from __future__ import annotations

from headpond.cluster.follower import ImageFollower
from headpond.ports import Changes
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("plain", "admin"), kinds=("silent watch", "store outage"))


def plant(patch: Patch) -> None:
    refresh = ImageFollower.refresh

    async def skip(self: ImageFollower) -> None:
        if not self._published_revision:
            await refresh(self)
            return
        listing = await self._store.list("")
        async with self._one_at_a_time:
            if listing.revision > self.image.revision:
                await self._publish(self.image.apply(Changes(listing.revision, ())))

    patch.set(ImageFollower, "refresh", skip)
