"""A partition takes over whatever folder has its name, whichever topic's it is.

Promise  a topic that was deleted and made anew begins empty.
Found    a kill between the deletion in the store and the renaming of the folder, with the topic made anew before or
         after it; a slow disk holds the renaming up.
"""

from __future__ import annotations

from headpond.model import TopicId
from headpond.ports import FileSystem
from headpond.storage.folder import data_folder
from headpond.storage.log import segment_files
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(
    workloads=("plain", "idempotent", "consumers", "admin"),
    kinds=("kill", "crash at name", "slow disk"),
    topics=("passing",),
    partitions=1,
)


def plant(patch: Patch) -> None:
    def not_known(fs: FileSystem, path: str) -> TopicId | None:
        return None

    patch.set(data_folder, "_topic_id_of", not_known)
    patch.set(segment_files, "_is_ours", lambda fs, path, topic_id: True)
