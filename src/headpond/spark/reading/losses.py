"""Records that can't be read any more: a failure, or a line in the log, as ``failOnDataLoss`` says."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headpond.spark.kafka.errors import FAIL_ON_DATA_LOSS_ADVICE, DataLost

_log = logging.getLogger("headpond.spark")


def report(losses: Sequence[str], *, is_failure: bool) -> None:
    """``DataLost``, or a line in the log."""
    if not losses:
        return
    sentence = "; ".join(losses)
    if is_failure:
        raise DataLost(f"records may have been missed: {sentence}; {FAIL_ON_DATA_LOSS_ADVICE}")
    _log.warning("records may have been missed: %s", sentence)
