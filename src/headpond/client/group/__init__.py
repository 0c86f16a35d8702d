"""Members of consumer groups. Both kinds have the same interface, that of ``Member``.

member.py    what both kinds have in common: callbacks, commits, leaving; session.py: how long an assignment holds
classic.py   JoinGroup, SyncGroup, Heartbeat, LeaveGroup; ranges.py: the assignment, when it leads the group
consumer.py  KIP-848: ConsumerGroupHeartbeat; the coordinator assigns
offsets.py   OffsetCommit and OffsetFetch of a member
"""
