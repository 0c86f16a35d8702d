"""Until when the coordinator certainly keeps a member, by the member's own clock.

The coordinator may give a member's partitions to others when it has not heard from it for the session time-out, or when
a rebalance has waited for it for the rebalance time-out. Both begin when the coordinator handles a request, later than
the member sent it: counted from the sending, the member's time is up first, whatever happened to the answers.

    heartbeat sent   handled    answer lost ...                    ours ends   the coordinator's ends
    |----------------|------------------------------------------------|--------|

Not covered: an administrator who removes members, and a static member that is replaced. Both take effect at once.
"""

from __future__ import annotations

from headpond.ports import Clock


class Session:
    def __init__(self, clock: Clock, session_timeout_ms: int, rebalance_timeout_ms: int) -> None:
        self._clock = clock
        self._session_s = session_timeout_ms / 1_000
        self._rebalance_s = rebalance_timeout_ms / 1_000
        self._until_s: float | None = None
        self._settled_s = 0.0

    @property
    def is_alive(self) -> bool:
        return self.left_s > 0

    @property
    def left_s(self) -> float:
        return 0.0 if self._until_s is None else max(0.0, self._until_s - self._clock.monotonic())

    def begin(self, sent_s: float) -> None:
        """``sent_s``: the time before the request was sent by which the member came into the group."""
        self._settled_s = sent_s
        self._until_s = sent_s + min(self._session_s, self._rebalance_s)

    def heard(self, sent_s: float, *, is_settled: bool) -> None:
        """A heartbeat was answered. ``is_settled``: the coordinator waits for nothing that this member has to give up.
        An answer that comes when the time is up does not turn it back."""
        if not self.is_alive:
            return
        if is_settled:
            self._settled_s = sent_s
        self._until_s = min(sent_s + self._session_s, self._settled_s + self._rebalance_s)

    def end(self) -> None:
        self._until_s = None
