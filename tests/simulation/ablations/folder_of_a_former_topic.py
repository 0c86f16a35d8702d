"""A partition takes over whatever folder has its name, whichever topic's it is.

Promise  a topic that was deleted and made anew begins empty.
Found    a kill between the deletion in the store and the renaming of the folder, with the topic made anew before or
         after it.
"""

from __future__ import annotations

from headpond.model import TopicId
from headpond.ports import FileSystem
from headpond.storage.folder import data_folder
from headpond.storage.log import segment_files
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import ClockDrift, CrashAtOperation, KillClient

SCENARIO = Scenario(
    workloads=("idempotent", "transactions v2", "consumers", "admin"),
    topics=("passing",),
    partitions=1,
    draw=one_after_the_other(
        # The administrator's pauses are shorter: more topics are deleted and made anew.
        lambda chance, at_s: ClockDrift(at_s, "c-admin", 3.0, 2.0),
        *[lambda chance, at_s: CrashAtOperation(at_s, 0, keeps_power=True, only="name")] * 2,
        # A consumer that starts looks at the new topic at once.
        lambda chance, at_s: KillClient(at_s, "c-consumers", 0.05),
        gap_s=(0.4, 0.5),
        times=14,
    ),
)


def plant(patch: Patch) -> None:
    def not_known(fs: FileSystem, path: str) -> TopicId | None:
        return None

    patch.set(data_folder, "_topic_id_of", not_known)
    patch.set(segment_files, "_is_ours", lambda fs, path, topic_id: True)
