"""What a user of the source can be told: one sentence, never a secret."""

from __future__ import annotations


class WrongOption(ValueError):
    """An option that does not exist, does not fit the others, or has a value that means nothing."""


class DataLost(RuntimeError):
    """Records that the query should have read are gone, and ``failOnDataLoss`` is true."""


class WrongCheckpoint(RuntimeError):
    """The checkpoint was not written by a query like this one."""


FAIL_ON_DATA_LOSS_ADVICE = "set failOnDataLoss to false to go on with what is there"
