"""The registers of a history, for G1 and T6: who wrote and read the committed offsets of each group and partition."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from simulation.checkers.evidence.facts import answered_s, effect_end_s, of_kind, succeeded
from simulation.checkers.evidence.fates import Fates
from simulation.checkers.evidence.register import NOTHING, Key, Read, Register, Write
from simulation.history import AdminChange, CommitOffset, DeleteOffsets, FetchOffset, GroupState, History, Operation


def registers(history: History) -> dict[Key, Register]:
    found: dict[Key, Register] = {}
    fates = Fates(history)
    for commit in of_kind(history, CommitOffset):
        write = _write(commit, fates)
        if write is not None:
            _at(found, commit.group, commit.topic, commit.partition).add(write)
    for fetch in succeeded(history, FetchOffset):
        read = Read(
            offset=fetch.offset,
            invoked_s=fetch.invoked_s,
            ended_s=answered_s(fetch),
            is_stable=fetch.requires_stable,
            source=fetch,
        )
        _at(found, fetch.group, fetch.topic, fetch.partition).reads.append(read)
    _add_final(found, history.groups_before_restart, "before")
    _add_final(found, history.groups_after_restart, "after")
    _add_deletions(found, history)
    return found


def _at(found: dict[Key, Register], group: str, topic: str, partition: int) -> Register:
    register = found.get((group, topic, partition))
    if register is None:
        register = found[group, topic, partition] = Register()
        register.add(_nothing(-inf, -inf, certain_s=-inf, source=None))
    return register


def _write(commit: CommitOffset, fates: Fates) -> Write | None:
    if commit.outcome == "failed" or fates.is_excluded(commit.transaction):
        return None
    ended_s = effect_end_s(commit)
    write = Write(
        offset=commit.offset,
        invoked_s=commit.invoked_s,
        ended_s=ended_s,
        visible_s=commit.invoked_s,
        certain_s=ended_s,
        stable_s=ended_s,
        source=commit,
    )
    if commit.transaction is not None:
        ending = fates[commit.transaction]
        write.visible_s = max(commit.invoked_s, ending.commit_invoked_s)
        write.certain_s = inf
        write.stable_s = max(ended_s, ending.committed_s)
    return write


def _nothing(invoked_s: float, ended_s: float, *, certain_s: float, source: Operation | None) -> Write:
    return Write(
        offset=NOTHING,
        invoked_s=invoked_s,
        ended_s=ended_s,
        visible_s=invoked_s,
        certain_s=certain_s,
        stable_s=certain_s,
        source=source,
    )


def _add_final(found: dict[Key, Register], states: dict[str, GroupState], when: str) -> None:
    told = {
        (group, topic, partition): offset
        for group, state in states.items()
        for topic, partition, offset in state.offsets
    }
    for group, topic, partition in told.keys() - found.keys():
        _at(found, group, topic, partition)
    for key, register in found.items():
        if key[0] in states:
            offset = told.get(key, NOTHING)
            who = f"the last look {when} the restart"
            read = Read(offset=offset, invoked_s=inf, ended_s=inf, is_stable=True, source=who)
            register.reads.append(read)


def _add_deletions(found: dict[Key, Register], history: History) -> None:
    deletions = [each for each in of_kind(history, DeleteOffsets) if each.outcome != "failed"]
    of_topics: dict[str, list[Write]] = {}
    for topic, write in _topic_deletions(history):
        of_topics.setdefault(topic, []).append(write)
    for (group, topic, _), register in found.items():
        for each in deletions:
            if each.group == group and each.topic in ("", topic):
                ended_s = effect_end_s(each)
                register.add(_nothing(each.invoked_s, ended_s, certain_s=ended_s, source=each))
        for write in of_topics.get(topic, ()):
            register.add(_nothing(write.invoked_s, write.ended_s, certain_s=write.certain_s, source=write.source))


def _topic_deletions(history: History) -> Iterator[tuple[str, Write]]:
    """A topic's deletion may leave offsets for a while; made anew, it has none of the old one's."""
    open_: dict[str, AdminChange] = {}
    for change in of_kind(history, AdminChange):
        if change.kind == "delete" and change.outcome != "failed":
            yield change.topic, _nothing(change.invoked_s, effect_end_s(change), certain_s=inf, source=change)
            if change.outcome == "ok":
                open_[change.topic] = change
        elif change.kind == "create" and change.outcome == "ok" and change.topic in open_:
            deleted = open_.pop(change.topic)
            if effect_end_s(deleted) < change.invoked_s:
                created_s, ended_s = effect_end_s(change), effect_end_s(deleted)
                yield change.topic, _nothing(deleted.invoked_s, ended_s, certain_s=created_s, source=change)
