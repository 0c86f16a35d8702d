"""Consumer groups (KIP-848). ``groups.py`` is the door, ``classic_door.py`` the one for classic members.

group.py             what a group is, from the log           member.py           one member, likewise
heartbeat.py         joining and staying                     fencing.py          leaving, by will or by force
target.py            who should hold what (assignors/)       reconciliation.py   how a member gets there
subscription.py      epochs, regular expressions             topics.py           the topics, and their fingerprint
classic_members.py   members that speak the old protocol     conversion.py       groups that change theirs
checks.py            what is refused                         sessions.py         time-outs
"""

from headpond.coordination.groups.consumer.group import ConsumerGroup
from headpond.coordination.groups.consumer.groups import ConsumerGroups
from headpond.coordination.groups.consumer.topics import ImageTopics, TopicFacts, TopicsView

__all__ = ["ConsumerGroup", "ConsumerGroups", "ImageTopics", "TopicFacts", "TopicsView"]
