"""What goes wrong with a log, in words for the program's author. Bad arguments are ``TypeError`` and ``ValueError``."""

from __future__ import annotations

from headpond import model


class LogError(Exception):
    """All of the errors below."""


class LogUnusable(LogError):
    """The folder can't be opened as this log: it is another's, is damaged, or the disk refuses."""


class LogInUse(LogUnusable):
    """It is open already, in this process or in another one."""


class LogClosed(LogError):
    """It was closed, or belongs to the process that this one was forked from."""


class LogFailed(LogError):
    """A sync has failed. What the disk holds of the last appends is not known: they may be there after the next open,
    which asks the disk and not memory. Until then the log takes no more appends."""


class NotAppended(LogError, model.StorageFailed):
    """The disk took no more (it is full, say). Nothing of the record is in the log; it may be tried again."""


class RecordTooLarge(LogError, ValueError):
    """One record is larger than a batch may be."""


class OffsetOutOfRange(LogError, model.OffsetOutOfRange):
    """No record ever had this offset, or it was deleted. ``start_offset`` to ``end_offset`` (exclusive) can be had."""

    def __init__(self, offset: int, start_offset: int, end_offset: int) -> None:
        super().__init__(None, f"offset {offset} is outside of the log, which has {start_offset} to {end_offset}")
        self.offset = offset
        self.start_offset = start_offset
        self.end_offset = end_offset


class CorruptRecord(LogError):
    """The bytes at ``offset`` are not what was written. What can be read behind them begins at ``next_offset``."""

    def __init__(self, offset: int, next_offset: int, what: str) -> None:
        super().__init__(
            f"the batch at offset {offset} is damaged ({what}); read on from offset {next_offset} to leave it out"
        )
        self.offset = offset
        self.next_offset = next_offset


class ReadFailed(LogError):
    """The disk could not be read."""


class KeyMissing(LogError):
    """A record without a key would be lost by a compaction, which keeps the latest record of each key."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the record at offset {offset} has no key: a compaction would remove it; nothing was changed")
        self.offset = offset


class CompactionFailed(LogError):
    """Nothing is lost: what was cleaned before is in place, the rest is as it was."""
