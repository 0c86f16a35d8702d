"""How a run ends without success: one sentence for a person, with the file and line where that is known."""

from __future__ import annotations


class RunFailed(RuntimeError):
    """The message is the sentence, without secrets."""


class RunBusy(RunFailed):
    """The same pipeline is running already."""


class WrongFolder(RunFailed):
    """The checkpoint belongs to another pipeline, or to this one as it was."""
