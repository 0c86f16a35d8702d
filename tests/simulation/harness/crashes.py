"""Every disk that a power cut may leave behind, for each moment of a trace.

A test records a run on a ``SimulatedDisk``, then recovers from each ``CrashState`` and checks what it promised. Small
moments are enumerated exhaustively; larger ones by the cases that find bugs (nothing kept, everything kept, each one
missing, each one alone, each prefix) and a seeded sample of the rest. A write is torn at telling byte boundaries, with
the file ending there, or as long as it would be with zeros or garbage in the rest (length and content are not ordered).
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from simulation.harness.durable import ROOT, DurableState, Image, Pending
from simulation.harness.trace import Marked, Op, Wrote

STATES_PER_MOMENT_MAX = 300
_EXHAUSTIVE_UP_TO_OPS = 6
_PAGE_BYTES = 4_096
# Inside a record batch's header: after the base offset, the length, the epoch, the magic byte, the CRC, and at its end.
_TELLING_SIZES = (1, 8, 12, 16, 17, 21, 60, 61)


class CrashState(NamedTuple):
    image: Image
    operations: int
    """How many operations of the trace had been carried out when the power went."""
    marks: tuple[object, ...]
    """The labels that the test had noted by then."""
    story: str
    """For the failure message: what of the pending operations survived."""


def crash_states(
    base: Image,
    trace: Sequence[Op],
    *,
    states_per_moment_max: int = STATES_PER_MOMENT_MAX,
    first_operation: int = 0,
    seed: int = 0,
) -> Iterator[CrashState]:
    """All moments after ``first_operation`` operations or more; equal disks with equal promises come once."""
    state = DurableState(base)
    marks: tuple[object, ...] = ()
    seen: set[tuple[int, bytes]] = set()
    for moment in range(len(trace) + 1):
        if moment:
            op = trace[moment - 1]
            state.apply(op)
            if isinstance(op, Marked):
                marks += (op.label,)
        if moment < first_operation:
            continue
        chance = random.Random(seed * 1_000_003 + moment)
        for image, story in moment_states(state, states_per_moment_max, chance):
            identity = (len(marks), _identity(image))
            if identity not in seen:
                seen.add(identity)
                yield CrashState(image, moment, marks, story)


def moment_states(state: DurableState, states_max: int, chance: random.Random) -> Iterator[tuple[Image, str]]:
    """What a power cut now may leave: subsets of what is pending, then torn writes."""
    pending = state.pending()
    subsets = list(itertools.islice(_subsets(pending, chance), max(1, states_max // 2)))
    for kept in subsets:
        yield state.image(kept), _story(pending, kept, None)
    variants = itertools.islice(_torn(pending, subsets, chance), states_max - len(subsets))
    for kept, sequence, piece, how in variants:
        yield state.image(kept, {sequence: piece}), _story(pending, kept, f"#{sequence} torn: {how}")


def random_image(state: DurableState, chance: random.Random) -> Image:
    """One power cut, by the dice: for simulations that go on afterwards."""
    pending = state.pending()
    keep_rate = chance.choice((0.0, 0.3, 0.7, 1.0))
    kept = frozenset(each.sequence for each in pending if chance.random() < keep_rate)
    last = _last_write(pending, kept)
    if last is None or chance.random() < 0.5:
        return state.image(kept)
    _, piece = chance.choice(list(_tears(last, chance)))
    return state.image(kept, {last.sequence: piece})


def _subsets(pending: Sequence[Pending], chance: random.Random) -> Iterator[frozenset[int]]:
    """Nothing kept and everything kept (which is also what a kill leaves) first: the caller may not take them all."""
    numbers = [each.sequence for each in pending]
    everything = frozenset(numbers)
    if len(numbers) <= _EXHAUSTIVE_UP_TO_OPS:
        yield frozenset()
        if numbers:
            yield everything
        for count in range(1, len(numbers)):
            for chosen in itertools.combinations(numbers, count):
                yield frozenset(chosen)
        return
    telling: list[frozenset[int]] = []
    for index, number in enumerate(numbers):
        telling += [everything - {number}, frozenset((number,)), frozenset(numbers[:index])]
    chance.shuffle(telling)  # the limit may cut this list short: every kind should still be seen
    yielded: set[frozenset[int]] = set()
    for subset in [frozenset[int](), everything, *telling]:
        if subset not in yielded:
            yielded.add(subset)
            yield subset
    for _ in range(20 * len(numbers)):
        rate = chance.random()
        subset = frozenset(number for number in numbers if chance.random() < rate)
        if subset not in yielded:
            yielded.add(subset)
            yield subset


def _torn(
    pending: Sequence[Pending], subsets: Sequence[frozenset[int]], chance: random.Random
) -> Iterator[tuple[frozenset[int], int, Wrote, str]]:
    """The last kept write of each subset, torn; the subset that keeps everything first, the rest in random order."""
    everything = frozenset(each.sequence for each in pending)
    others = [subset for subset in subsets if subset != everything]
    chance.shuffle(others)
    for kept in [everything, *others]:
        last = _last_write(pending, kept)
        if last is not None:
            for how, piece in _tears(last, chance):
                yield kept, last.sequence, piece, how


def _last_write(pending: Sequence[Pending], kept: frozenset[int]) -> Pending | None:
    for each in reversed(pending):
        if each.sequence in kept and isinstance(each.op, Wrote) and each.op.data:
            return each
    return None


def _tears(pending: Pending, chance: random.Random) -> Iterator[tuple[str, Wrote]]:
    write = pending.op
    assert isinstance(write, Wrote)
    inode, position, data = write
    for size in _tear_sizes(position, len(data), chance):
        rest = len(data) - size
        if size:
            yield f"{size} bytes", Wrote(inode, position, data[:size])
        yield f"{size} bytes, then zeros", Wrote(inode, position, data[:size] + bytes(rest))
        yield f"{size} bytes, then garbage", Wrote(inode, position, data[:size] + chance.randbytes(rest))
    first_page_end = _PAGE_BYTES - position % _PAGE_BYTES
    if first_page_end < len(data):  # pages go out in any order
        yield "all but its first page", Wrote(inode, position, bytes(first_page_end) + data[first_page_end:])


def _tear_sizes(position: int, size: int, chance: random.Random) -> list[int]:
    sizes = {0, size // 2, size - 1, chance.randrange(size)}
    sizes.update(telling for telling in _TELLING_SIZES if telling < size)
    page_edges = range(_PAGE_BYTES - position % _PAGE_BYTES, size, _PAGE_BYTES)
    sizes.update(page_edges[:2])
    sizes.update(page_edges[-1:])
    return sorted(sizes)


def _story(pending: Sequence[Pending], kept: frozenset[int], torn: str | None) -> str:
    lines = [f"{'kept' if each.sequence in kept else 'lost'} #{each.sequence}: {each.op}" for each in pending]
    return "; ".join([*lines, *([torn] if torn else [])]) or "nothing was pending"


def _identity(image: Image) -> bytes:
    """Equal for disks that a program can't tell apart: inode numbers do not matter, names and bytes do."""
    digest = hashlib.blake2b(digest_size=16)

    def visit(path: str, entries: Mapping[str, int]) -> None:
        for name in sorted(entries):
            inode = entries[name]
            content = image.files.get(inode)
            digest.update(f"{path}/{name}\0{'folder' if content is None else len(content)}\0".encode())
            if content is None:
                visit(f"{path}/{name}", image.directories[inode])
            else:
                digest.update(content)

    visit("", image.directories[ROOT])
    return digest.digest()
