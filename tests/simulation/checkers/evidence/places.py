"""To which of the final logs a send belongs."""

from __future__ import annotations

from simulation.checkers.evidence.policies import Policies
from simulation.history import History, Place, Send


class Places:
    def __init__(self, history: History, policies: Policies) -> None:
        self._logs = history.final_logs
        self._named = {(place.topic, place.partition): place for place in history.final_logs}
        self._policies = policies

    def home(self, send: Send) -> Place | None:
        """None: not at the end."""
        if send.topic_id is None:
            return self._named.get((send.topic, send.partition))
        place = Place(send.topic, send.topic_id, send.partition)
        return place if place in self._logs else None

    def may_be_over(self, send: Send) -> bool:
        """Whether the life of the topic that it was sent to may have ended since. One that is among the final logs
        under the id that the send named is not over."""
        if send.topic_id is not None and self.home(send) is not None:
            return False
        return self._policies.may_be_deleted_after(send.topic, send.invoked_s)
