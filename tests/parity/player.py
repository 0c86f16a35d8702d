"""Plays a script against a broker and says what was seen, in words that are the same for every broker and every run.

What a run made up is put back under its name: see ``surroundings.py``.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from headpond.protocol.apis import APIS
from headpond.protocol.codec import decoder, encoder
from headpond.protocol.errors import MalformedMessage
from parity.notation import Answer, Ask, MakeName, MakeTopic, Raw, Restart, Script, Step, resolve
from parity.plain import Plain, at, make_request, plain
from parity.surroundings import Peer, Surroundings
from support.verbs import create_topic
from support.waiting import DEADLINE_S
from support.wire import API_KEYS, API_VERSIONS_KEY, ConnectionClosed, Wire

RAW_PATIENCE_S = 10.0
"""Bytes that are no whole request may be waited for to go on; that is an observation too."""


class Seen(NamedTuple):
    label: str
    version: int | None
    answer: Plain


def play(script: Script, peer: Peer) -> list[Seen]:
    seen: list[Seen] = []
    for version in rounds(script):
        with Round(script, peer, version) as played:
            seen += played.play()
    return seen


def rounds(script: Script) -> list[int | None]:
    return list(script.only or versions_of(script.each)) if script.each else [None]


def versions_of(api: str) -> range:
    return APIS[API_KEYS[api]].versions


def steps_of(script: Script, version: int | None) -> Iterator[tuple[str, int | None, Step]]:
    """(label, version, step) as played; the labels are unique."""
    times: dict[str, int] = {}
    for step in script.steps:
        if isinstance(step, MakeTopic | MakeName | Restart):
            yield "", None, step
            continue
        label = step.label or (step.api if isinstance(step, Ask) else "")
        times[label] = times.get(label, 0) + 1
        label = label if times[label] == 1 else f"{label} ({times[label]})"
        if isinstance(step, Raw | Answer):
            yield label, None, step
        elif step.versions is None:
            at_version = version if step.api == script.each else versions_of(step.api)[-1]
            yield label, at_version, step
        else:
            for each in step.versions or versions_of(step.api):
                yield label, each, step


class Round:
    """One pass through a script, at one version of the API that it is about."""

    def __init__(self, script: Script, peer: Peer, version: int | None) -> None:
        self.script = script
        self.peer = peer
        self.version = version
        self.began_ms = time.time_ns() // 1_000_000
        self._wires: dict[str, Wire] = {}
        self._parked: dict[str, tuple[Ask, int, int]] = {}
        self.variables: dict[str, Any] = {
            "cluster": peer.cluster_id,
            "port": int(peer.bootstrap.rpartition(":")[2]),
            "now": self.began_ms,
        }

    def __enter__(self) -> Round:
        return self

    def __exit__(self, *_: object) -> None:
        self._hang_up()

    def _hang_up(self) -> None:
        while self._wires:
            self._wires.popitem()[1].close()

    def play(self) -> Iterator[Seen]:
        for label, version, step in steps_of(self.script, self.version):
            if isinstance(step, MakeTopic):
                self._make_topic(step)
            elif isinstance(step, MakeName):
                self.variables[step.handle] = self._name(step.handle)
            elif isinstance(step, Restart):
                assert self.script.fresh, "others use this broker too"
                self._hang_up()
                self.peer.restart(step.settings)
            elif isinstance(step, Raw):
                yield Seen(label, self.version, self._raw(step))
            elif isinstance(step, Answer):
                yield Seen(label, self.version, self._answer(step))
            elif step.parked:
                assert version is not None
                request = make_request(step.api, version, resolve(step.fields, self.variables))
                self._parked[step.parked] = step, version, self._wire(step.connection).send(request, version)
            else:
                assert version is not None
                answer = self._ask(step, version)
                if not step.shown:
                    continue
                # Rounds are told apart by the version that they are about, the steps of a round by their own.
                yield Seen(label, version if self.version is None else self.version, answer)

    def _make_topic(self, step: MakeTopic) -> None:
        name = self._name(step.handle)
        with Wire(self.peer.bootstrap) as wire:
            made = create_topic(wire, name, partitions=step.partitions, configs=dict(step.configs))
        self.variables[step.handle] = name
        self.variables[step.handle + ".id"] = made.id

    def _name(self, handle: str) -> str:
        words = re.sub(r"[^a-z0-9]+", "-", self.script.name.lower())[:60].strip("-")
        return f"{words}-{handle}" + ("" if self.version is None else f"-v{self.version}")

    # --- asking

    def _ask(self, step: Ask, version: int) -> Plain:
        request = make_request(step.api, version, resolve(step.fields, self.variables))
        until = time.monotonic() + DEADLINE_S
        while True:
            answer, message = self._exchange(step, version, request)
            if step.until is None or message is None or step.until(message) or time.monotonic() > until:
                break
            time.sleep(0.02)
        return self._said(step, answer, message)

    def _answer(self, step: Answer) -> Plain:
        asked, version, correlation_id = self._parked.pop(step.parked)
        return self._said(step, *self._receive(asked, version, correlation_id))

    def _said(self, step: Ask | Answer, answer: Plain, message: Any) -> Plain:
        if message is not None:
            for name, path in step.capture.items():
                self.variables[name] = at(message, path)
        return self._words().put_back(answer, step.unordered)

    def _exchange(self, step: Ask, version: int, request: Any) -> tuple[Plain, Any]:
        wire = self._wire(step.connection)
        wire.socket.settimeout(step.patience_s)
        try:
            sent = wire.send(request, version)
        except (BrokenPipeError, ConnectionResetError):
            self._wires.pop(step.connection).close()
            return {"connection": "closed"}, None
        return self._receive(step, version, sent) if step.answered else ({"no answer": "expected"}, None)

    def _receive(self, step: Ask, version: int, sent: int) -> tuple[Plain, Any]:
        wire = self._wire(step.connection)
        try:
            return self._read(wire.receive_frame(), step.api, version, sent)
        except (ConnectionClosed, BrokenPipeError, ConnectionResetError):
            self._wires.pop(step.connection).close()
            return {"connection": "closed"}, None
        except TimeoutError:
            self._wires.pop(step.connection).close()
            return {"no answer": "at all"}, None

    def _raw(self, step: Raw) -> Plain:
        with Wire(self.peer.bootstrap) as wire:
            wire.send_raw(step.data)
            wire.socket.settimeout(RAW_PATIENCE_S)
            try:
                frame = wire.receive_frame()
            except (ConnectionClosed, BrokenPipeError, ConnectionResetError):
                return {"connection": "closed"}
            except TimeoutError:
                return {"no answer": "at all"}
        key, version = struct.unpack_from(">hh", step.data, 4)
        api, version = step.read_as or (APIS[key].name, version)
        return self._words().put_back(self._read(frame, api, version, None)[0], ())

    def _read(self, frame: bytes, api: str, version: int, correlation_id: int | None) -> tuple[Plain, Any]:
        key = API_KEYS[api]
        if correlation_id is not None and int.from_bytes(frame[:4], "big") != correlation_id:
            return {"answer": "of another request"}, None
        position = 4
        if APIS[key].is_flexible(version) and key != API_VERSIONS_KEY:
            if frame[position] != 0:
                return {"header": "has tagged fields"}, None
            position += 1
        response = APIS[key].response
        try:
            message, end = decoder(response, version)(frame, position)
        except MalformedMessage as malformed:
            return {"answer": f"malformed: {malformed}"}, None
        answer = plain(message, version)
        if end != len(frame) or encoder(response, version)(message) != frame[position:]:
            answer["bytes"] = "differ from what the codec makes of the same fields"
        return answer, message

    def _wire(self, name: str) -> Wire:
        if name not in self._wires:
            self._wires[name] = Wire(self.peer.bootstrap, client_id="parity")
        return self._wires[name]

    def _words(self) -> Surroundings:
        return Surroundings(self.peer, self.variables, self.began_ms)
