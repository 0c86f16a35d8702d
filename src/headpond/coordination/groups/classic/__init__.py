"""Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup. ``groups.py`` is the door."""

from headpond.coordination.groups.classic.group import ClassicGroup, Phase
from headpond.coordination.groups.classic.groups import ClassicGroups
from headpond.coordination.groups.classic.refusals import join_refusal, sync_refusal

__all__ = ["ClassicGroup", "ClassicGroups", "Phase", "join_refusal", "sync_refusal"]
