"""The folder of a log: a data folder of the broker's, with one partition in it. Blocking.

    orders/               meta.properties, checkpoints, the lock
    orders/orders-0/      segments and their indexes

What belongs to a broker, or holds more than the one log, is refused: the library would write checkpoints that know
nothing of the others.
"""

from __future__ import annotations

from headpond.log.errors import LogUnusable
from headpond.model import TopicId, TopicPartition
from headpond.ports import FileSystem
from headpond.storage.folder.data_folder import partitions_with_data
from headpond.storage.folder.names import METADATA_STORE
from headpond.storage.recovery.inspection import read_topic_id


def look(fs: FileSystem, data_dir: str, tp: TopicPartition) -> TopicId | None:
    """The id that the log has; None: it is new. Raises ``LogUnusable``."""
    if fs.exists(f"{data_dir}/{METADATA_STORE}"):
        raise LogUnusable(
            f"{data_dir} belongs to a broker (it has a {METADATA_STORE}): start it with `headpond serve --data-dir "
            f"{data_dir}` and read its topics with a client"
        )
    others = [str(other) for other in partitions_with_data(fs, data_dir) if other != tp]
    if others:
        raise LogUnusable(f"{data_dir} holds {', '.join(others[:3])}, and not only the log {tp.topic}")
    return read_topic_id(fs, f"{data_dir}/{tp}")
