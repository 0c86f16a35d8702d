"""The metadata store, read at a start and checked before anything is written: its entries, and whether it belongs to
the data folder around it.

A store without a cluster beside folders with data means that its file was lost, or that the folders came from
elsewhere. A broker that started all the same would look healthy without a single topic, and put the folders aside as
soon as topics of their names were created.
"""

from __future__ import annotations

from headpond.cluster.follower import ImageFollower
from headpond.cluster.image import MetadataImage
from headpond.cluster.names import CLUSTER_METADATA_TOPIC, is_internal
from headpond.cluster.rows import BadEntry
from headpond.ports import FileSystem, Workers
from headpond.storage.errors import DataFolderUnusable
from headpond.storage.folder.data_folder import partitions_with_data
from headpond.storage.folder.names import METADATA_STORE

SHOWN_MAX = 3


async def read_metadata(follower: ImageFollower, data_dir: str) -> None:
    """Start the follower; raises ``DataFolderUnusable`` when an entry can't be read or is missing."""
    try:
        await follower.start()
        follower.image.check_whole()
    except BadEntry as error:
        raise DataFolderUnusable(
            f"{data_dir}/{METADATA_STORE}: {error}; restore the file from a copy, or move it away and run "
            f"`headpond adopt --data-dir {data_dir}` to get the topics back from their folders"
        ) from error


async def check_folder(image: MetadataImage, fs: FileSystem, workers: Workers, data_dir: str) -> None:
    """Raises ``DataFolderUnusable`` when the store is new and the folder is not. Internal topics do not count: nothing
    brings them back, so a broker that refused them could never be started."""
    if image.cluster_id or image.topics:
        return
    partitions = await workers.run(partitions_with_data, fs, data_dir)
    orphans = [str(tp) for tp in partitions if not is_internal(tp.topic) and tp.topic != CLUSTER_METADATA_TOPIC]
    if orphans:
        shown = ", ".join(orphans[:SHOWN_MAX]) + (", ..." if len(orphans) > SHOWN_MAX else "")
        raise DataFolderUnusable(
            f"{data_dir} has partition folders ({shown}), but its metadata file {METADATA_STORE} is missing or empty: "
            f"restore the file from a copy, or run `headpond adopt --data-dir {data_dir}` to get the topics back from "
            "their folders, or move the folders away to start without them"
        )
