"""What a user of the lake pipelines is told: one sentence."""

from __future__ import annotations


class LakeError(RuntimeError):
    """The lake, or what is asked of it, is not right; the sentence says what to do."""
