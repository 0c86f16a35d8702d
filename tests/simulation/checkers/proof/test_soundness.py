"""No checker accuses a correct broker, whatever overlaps or stays unknown; and damage to its logs is noticed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from simulation.checkers import judge
from simulation.checkers.proof.model_clients import good_history
from simulation.history import FetchOffset, FinalLog, History, Send


@pytest.mark.parametrize("seed", range(20))
def test_a_correct_broker_is_never_accused(seed: int) -> None:
    history = good_history(seed, operations=400)
    assert judge(history) == []
    assert sum(type(each) is Send and each.outcome == "ok" for each in history.operations) > 50


@pytest.mark.parametrize("seed", range(10))
def test_a_lost_a_repeated_and_a_changed_batch_are_noticed(seed: int) -> None:
    for damage in (_lose, _repeat, _change):
        history = good_history(seed, operations=400)
        place = max(history.final_logs, key=lambda place: len(history.final_logs[place].fetched))
        history.final_logs[place] = damage(history.final_logs[place], Random(seed))
        assert judge(history), damage


@pytest.mark.parametrize("seed", range(10))
def test_a_committed_offset_that_nobody_committed_is_noticed(seed: int) -> None:
    history: History = good_history(seed, operations=400)
    fetches = [each for each in history.operations if type(each) is FetchOffset]
    Random(seed).choice(fetches).offset = 999
    assert [each.property[:2] for each in judge(history)] == ["G1"]


def _lose(log: FinalLog, rng: Random) -> FinalLog:
    number = rng.choice([number for number, each in enumerate(log.fetched) if not each.control])
    gone = log.fetched[number].base_offset
    batches = log.fetched[:number] + log.fetched[number + 1 :]
    committed = tuple(each for each in log.committed if each.offset != gone)
    return replace(log, fetched=batches, on_disk=batches, committed=committed)


def _repeat(log: FinalLog, rng: Random) -> FinalLog:
    batches = (*log.fetched, rng.choice(log.fetched))
    return replace(log, fetched=batches, on_disk=batches)


def _change(log: FinalLog, rng: Random) -> FinalLog:
    number = rng.choice([number for number, each in enumerate(log.fetched) if not each.control])
    other = tuple(each._replace(value=b"other") for each in log.fetched[number].records)
    batches = (*log.fetched[:number], log.fetched[number]._replace(records=other), *log.fetched[number + 1 :])
    return replace(log, fetched=batches, on_disk=batches)
