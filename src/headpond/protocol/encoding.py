"""Writes the source of an encoder: straight-line Python for one message in one version.

Everything is appended to one ``bytearray``; adjacent fields of fixed size, and a length prefix that follows them, go
through one ``pack``. Fields that the version does not have must hold their default, unless they may be dropped.

The same in slices is a generator: it yields after so many elements (``wire.SLICE_ELEMENTS``), and whoever drives it may
take what is in the ``bytearray`` then, and empty it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from headpond.protocol import wire
from headpond.protocol.facts import FieldFacts, MessageFacts, struct_fields
from headpond.protocol.source import Source

if TYPE_CHECKING:
    from headpond.protocol.types import Message


def encoder_source(message: type[Message], facts: MessageFacts, version: int, *, in_slices: bool = False) -> Source:
    names = {
        "pack": struct.pack,
        "varint": wire.varint,
        "string_length": wire.string_length,
        "unsupported": wire.unsupported,
        "unsupported_null": wire.unsupported_null,
    }
    functions: list[list[str]] = []
    encoder = _Encoder(message, version, facts.is_flexible(version), Source(names), functions, in_slices=in_slices)
    with encoder.out.block("def encode_into(out, m):"):
        encoder.out.add("append = out.append")
        if in_slices:
            encoder.out.add(f"left = {wire.SLICE_ELEMENTS}", "if False: yield")  # a generator, also without a list
        encoder.struct("m", facts.fields)
        encoder.flush()
    if not in_slices:
        with encoder.out.block("def encode(m):"):
            encoder.out.add("out = bytearray()", "encode_into(out, m)", "return bytes(out)")
    for lines in functions:
        encoder.out.add(*lines)
    return encoder.out


class _Encoder:
    def __init__(
        self,
        message: type[Message],
        version: int,
        flexible: bool,
        out: Source,
        functions: list[list[str]],
        *,
        in_slices: bool = False,
    ) -> None:
        self.message = message
        self.in_slices = in_slices
        self.version = version
        self.flexible = flexible
        self.out = out
        self.functions = functions  # helpers for tagged fields, written beside the main function
        self.pending: list[tuple[str, str]] = []  # (format character, expression) waiting for one pack

    # ---- structs

    def struct(self, m: str, fields: tuple[FieldFacts, ...]) -> None:
        self.refuse_absent(m, fields)
        tagged = []
        for field in fields:
            if self.version not in field.versions:
                continue
            if field.tag is not None:
                tagged.append(field)
            else:
                self.field(f"{m}.{field.name}", m, field)
        if not self.flexible:
            return
        if not tagged:
            self.pending.append(("x", ""))  # a zero byte: no tagged fields
            return
        self.flush()
        plain = " and ".join(f"{m}.{field.name} == {self.out.literal(field.default)}" for field in tagged)
        with self.out.block(f"if {plain}:"):
            self.out.add("append(0)")
        with self.out.block("else:"):
            self.out.add(f"out += {self.tagged_fields(tagged)}(m={m})")

    def refuse_absent(self, m: str, fields: tuple[FieldFacts, ...]) -> None:
        absent = {f.name: f.default for f in fields if self.version not in f.versions and not f.ignorable}
        if absent:
            wrong = " or ".join(f"{m}.{name} != {self.out.literal(default)}" for name, default in absent.items())
            with self.out.block(f"if {wrong}:"):
                self.out.add(f"raise unsupported({m}, {self.version}, {self.out.refer('absent', absent)})")

    def tagged_fields(self, tagged: list[FieldFacts]) -> str:
        """A function of its own, since the size of each tagged field goes before it, and they are rare."""
        inner = _Encoder(self.message, self.version, True, Source(self.out.names), self.functions)
        name = self.out.fresh("tagged_fields")
        with inner.out.block(f"def {name}(m):"):
            inner.out.add("count = 0", "section = bytearray()")
            for field in sorted(tagged, key=lambda field: field.tag or 0):
                with inner.out.block(f"if m.{field.name} != {self.out.literal(field.default)}:"):
                    inner.out.add("count += 1", "out = bytearray()", "append = out.append")
                    inner.field(f"m.{field.name}", "m", field)
                    inner.flush()
                    tag = wire.varint(field.tag or 0)
                    inner.out.add(f"section += {tag!r}", "section += varint(len(out))", "section += out")
            inner.out.add("return varint(count) + section")
        self.functions.append(inner.out.lines)
        return name

    # ---- fields

    def field(self, value: str, m: str, field: FieldFacts) -> None:
        nullable = self.version in field.nullable
        if not nullable and (field.nullable or field.default is None):  # the class allows null, this version does not
            with self.out.block(f"if {value} is None:"):
                self.out.add(f"raise unsupported_null({m}, {self.version}, {field.name!r})")
        if field.is_list:
            self.list_of(value, field, nullable)
        elif field.struct is not None:
            self.nested(value, field, nullable)
        elif field.wire in wire.STRUCT_FORMATS:
            self.pending.append((wire.STRUCT_FORMATS[field.wire], value))
        else:
            self.text_or_bytes(value, field.wire, nullable)

    def nested(self, value: str, field: FieldFacts, nullable: bool) -> None:
        assert field.struct is not None
        fields = struct_fields(field.struct, self.message)
        name = self.out.fresh("m")
        self.out.add(f"{name} = {value}")
        if not nullable:
            self.struct(name, fields)
            return
        self.flush()
        with self.out.block(f"if {name} is None:"):
            self.out.add("append(0)" if field.tag is not None else "append(255)")
        with self.out.block("else:"):
            self.out.add("append(1)")
            self.struct(name, fields)
            self.flush()

    def text_or_bytes(self, value: str, kind: str, nullable: bool) -> None:
        out = self.out
        name = out.fresh("b")
        encoded = f"{value}.encode()" if kind == "string" else value
        length_of = f"len({name}) + 1" if self.flexible else f"len({name})"
        if nullable:
            length = out.fresh("n")
            with out.block(f"if {value} is None:"):
                out.add(f"{name} = b''", f"{length} = {0 if self.flexible else -1}")
            with out.block("else:"):
                out.add(f"{name} = {encoded}", f"{length} = {length_of}")
        else:
            out.add(f"{name} = {encoded}")
            length = length_of
        self.length(length, "h" if kind == "string" else "i", "string_length" if kind == "string" else "varint")
        out.add(f"out += {name}")

    def list_of(self, value: str, field: FieldFacts, nullable: bool) -> None:
        out = self.out
        name = out.fresh("list")
        out.add(f"{name} = {value}")
        if nullable:
            length = out.fresh("n")
            with out.block(f"if {name} is None:"):
                out.add(f"{name} = ()", f"{length} = {0 if self.flexible else -1}")
            with out.block("else:"):
                out.add(f"{length} = len({name})" + (" + 1" if self.flexible else ""))
        else:
            length = f"len({name})" + (" + 1" if self.flexible else "")
        self.length(length, "i", "varint")
        if field.wire == "uuid":
            out.add(f"out += b''.join({name})")
        elif field.wire in wire.STRUCT_FORMATS:
            code = wire.STRUCT_FORMATS[field.wire]
            few = out.refer("few", wire.few(code, "pack"))
            with out.block(f"if len({name}) < {wire.FEW}:"):
                out.add(f"out += {few}[len({name})](*{name})")
            with out.block("else:"):
                self.spend(f"len({name}) // {wire.ELEMENT_NUMBERS}")
                out.add(f"out += pack(f'>{{len({name})}}{code}', *{name})")
        else:
            element = out.fresh("m")
            with out.block(f"for {element} in {name}:"):
                self.spend("1")
                if field.struct is not None:
                    self.struct(element, struct_fields(field.struct, self.message))
                else:
                    self.text_or_bytes(element, field.wire, False)
                self.flush()

    def spend(self, cost: str) -> None:
        if not self.in_slices:
            return
        self.out.add(f"left -= {cost}")
        with self.out.block("if left < 0:"):
            self.out.add(f"left += {wire.SLICE_ELEMENTS}", "yield")

    # ---- lengths

    def length(self, expression: str, code: str, writer: str) -> None:
        if not self.flexible:
            self.pending.append((code, expression))
            self.flush()
            return
        self.flush()
        if not expression.isidentifier():
            name = self.out.fresh("n")
            self.out.add(f"{name} = {expression}")
            expression = name
        with self.out.block(f"if {expression} < 128:"):
            self.out.add(f"append({expression})")
        with self.out.block("else:"):
            self.out.add(f"out += {writer}({expression})")

    def flush(self) -> None:
        if not self.pending:
            return
        values = ", ".join(value for _, value in self.pending if value)
        formats = "".join(code for code, _ in self.pending)
        self.pending.clear()
        if formats == "x":
            self.out.add("append(0)")
            return
        pack, _ = self.out.packer(formats, "pack")
        self.out.add(f"out += {pack}({values})")
