"""M1: a broker's metadata image is a prefix of the store's history, and never goes back.

Within one life of a host the revision of its image never decreases, and at each revision the image is what the store's
own history makes it (``digest`` is ``expected``).

Exempt   a host that was started again: its image begins anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.evidence.words import at
from simulation.history import History, ImageSeen


def check(history: History) -> Iterator[str]:
    latest: dict[tuple[str, int], ImageSeen] = {}
    for image in history.images_seen:
        before = latest.get((image.host, image.life))
        who = f"{image.host} (life {image.life})"
        if before is not None and image.revision < before.revision:
            yield (
                f"the image of {who} was at revision {before.revision} at {at(before.at_s)}, and at "
                f"{image.revision} at {at(image.at_s)}"
            )
        if image.digest != image.expected:
            yield (
                f"the image of {who} at revision {image.revision} was not the store's at {at(image.at_s)}: "
                f"{image.digest} where {image.expected} was due"
            )
        latest[image.host, image.life] = image
