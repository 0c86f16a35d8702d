"""Messages to bytes and back: one function per message and version, compiled when it is first asked for.

    message, end = decoder(FetchRequest, 12)(buffer, position)
    data = encoder(FetchResponse, 12)(response)
    appender(FetchResponse, 12)(frame, response)             # appends to a bytearray that already holds a header

    decoder_in_slices(...), appender_in_slices(...)          # the same as generators: they yield every few milliseconds

A decoder takes any buffer and copies what it keeps out of it, except fields of type ``records``, which are slices of
the buffer: views, if the buffer is a memoryview. Any bytes give a message or ``MalformedMessage``, nothing else, in
time and memory proportional to their number; arrays of requests have a limit (``wire.ELEMENTS_MAX``). Unknown tagged
fields are skipped; bytes after the message are left alone.

Nothing here holds state but the cache of compiled functions; a crash leaves nothing behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from headpond.protocol.errors import UnsupportedVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from headpond.protocol.source import Source
    from headpond.protocol.types import Buffer, Message


M = TypeVar("M", bound="Message")

_decoders: dict[tuple[type[Any], int], Any] = {}
_encoders: dict[tuple[type[Any], int], tuple[Any, Any]] = {}
_decoders_in_slices: dict[tuple[type[Any], int], Any] = {}
_appenders_in_slices: dict[tuple[type[Any], int], Any] = {}


def decoder(message: type[M], version: int) -> Callable[[Buffer, int], tuple[M, int]]:
    """``(buffer, position) -> (message, end)``; raises ``MalformedMessage``."""
    compiled = _decoders.get((message, version))
    if compiled is None:
        compiled = _decoders[message, version] = _compile_decoder(message, version)
    return compiled  # type: ignore[no-any-return]


def encoder(message: type[M], version: int) -> Callable[[M], bytes]:
    """``message -> bytes``; raises ``UnsupportedField`` where the version has no place for a value."""
    return _encoding(message, version)[0]  # type: ignore[no-any-return]


def appender(message: type[M], version: int) -> Callable[[bytearray, M], None]:
    """``(out, message)``: the same, appended to ``out``. When it raises, ``out`` may hold a part of the message."""
    return _encoding(message, version)[1]  # type: ignore[no-any-return]


def decoder_in_slices(
    message: type[M], version: int
) -> Callable[[Buffer, int], Generator[None, None, tuple[M, int, int]]]:
    """``(buffer, position)``: returns the message, its end, and how many elements its arrays have in all."""
    compiled = _decoders_in_slices.get((message, version))
    if compiled is None:
        compiled = _decoders_in_slices[message, version] = _compile_decoder(message, version, in_slices=True)
    return compiled  # type: ignore[no-any-return]


def appender_in_slices(message: type[M], version: int) -> Callable[[bytearray, M], Generator[None, None, None]]:
    """``(out, message)``: what is in ``out`` whenever it yields is final and may be taken out of it."""
    compiled = _appenders_in_slices.get((message, version))
    if compiled is None:
        _, compiled = _compile_encoder(message, version, in_slices=True)
        _appenders_in_slices[message, version] = compiled
    return compiled  # type: ignore[no-any-return]


def _encoding(message: type[Any], version: int) -> tuple[Any, Any]:
    compiled = _encoders.get((message, version))
    if compiled is None:
        compiled = _encoders[message, version] = _compile_encoder(message, version)
    return compiled


# The generators are imported on first use: a broker that only starts up does not pay for them.


def _compile_decoder(message: type[Any], version: int, *, in_slices: bool = False) -> Any:
    from headpond.protocol.decoding import decoder_source
    from headpond.protocol.facts import message_facts

    _require(message, version)
    source = decoder_source(message, message_facts(message), version, in_slices=in_slices)
    return _run(source, f"<decode {message.__name__} v{version}>")["decode"]


def _compile_encoder(message: type[Any], version: int, *, in_slices: bool = False) -> tuple[Any, Any]:
    from headpond.protocol.encoding import encoder_source
    from headpond.protocol.facts import message_facts

    _require(message, version)
    source = encoder_source(message, message_facts(message), version, in_slices=in_slices)
    names = _run(source, f"<encode {message.__name__} v{version}>")
    return names.get("encode"), names["encode_into"]


def _require(message: type[Any], version: int) -> None:
    if version not in message.VERSIONS:
        raise UnsupportedVersion(f"{message.__name__} has versions {message.VERSIONS}, not {version}")


def _run(source: Source, title: str) -> dict[str, Any]:
    text = "\n".join(source.lines)
    names = source.names
    names["__source__"] = text  # for whoever debugs a codec
    exec(compile(text, title, "exec"), names)
    return names
