"""What groups obey, as the machines are given it: ``settings()`` returns what holds now, so dynamic changes take effect
with the next decision."""

from __future__ import annotations

from penstock.config.groups import GroupSettings, GroupTimes

__all__ = ["GroupSettings", "GroupTimes"]
