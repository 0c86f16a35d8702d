"""The mark of a clean shutdown is believed and not removed: the next crash looks clean, too.

Promise  after a crash everything above the recovery point is checked.
Found    a clean stop, then a power cut that tears a write, or leaves it in memory only.
"""

from __future__ import annotations

from headpond.ports import FileSystem
from headpond.storage.folder import data_folder, names
from simulation.ablations.planting import Patch, Scenario, one_after_the_other
from simulation.faults import CrashAtOperation, PowerCut, Stop

SCENARIO = Scenario(
    workloads=("plain", "idempotent", "consumers"),
    topics=("lasting",),
    partitions=3,
    draw=one_after_the_other(
        lambda chance, at_s: Stop(at_s, 0.05),
        lambda chance, at_s: CrashAtOperation(at_s, chance.randrange(3), keeps_power=True, only="sync"),
        lambda chance, at_s: PowerCut(at_s, 0.1),
        gap_s=(0.6, 1.3),
        times=6,
    ),
)


def plant(patch: Patch) -> None:
    def look(fs: FileSystem, data_dir: str) -> bool:
        path = f"{data_dir}/{names.CLEAN_SHUTDOWN}"
        return fs.exists(path) and names.decode_clean_shutdown(fs.read_file(path)) is not None

    patch.set(data_folder, "_take_clean_marker", look)
