"""Writes the source of a decoder: straight-line Python for one message in one version.

Adjacent fields of fixed size, and the length prefix that follows them, are read by one ``unpack_from``. Structs are
read in place; an array is a loop. A slice past the end of the buffer is short, not an error, and positions only grow:
so strings and bytes are not checked one by one, the last line checks them all (whatever is read after a short one
fails by itself).

The same in slices is a generator: it counts what it reads and yields after so much of it (``wire.SLICE_ELEMENTS``).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from headpond.protocol import wire
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.facts import FieldFacts, MessageFacts, struct_fields
from headpond.protocol.source import Source

if TYPE_CHECKING:
    import msgspec

    from headpond.protocol.types import Message


def decoder_source(message: type[Message], facts: MessageFacts, version: int, *, in_slices: bool = False) -> Source:
    return _Decoder(message, facts, version, in_slices).write(facts.fields)


class _Decoder:
    def __init__(self, message: type[Message], facts: MessageFacts, version: int, in_slices: bool) -> None:
        self.message = message
        self.in_slices = in_slices
        self.is_request = facts.name.endswith("Request")
        self.version = version
        self.flexible = facts.is_flexible(version)
        self.title = f"{facts.name} v{version}"
        self.out = Source(
            {
                "MalformedMessage": MalformedMessage,
                "StructError": struct.error,
                "unpack_from": struct.unpack_from,
                "rest_of_varint": wire.rest_of_varint,
                "rest_of_string_length": wire.rest_of_string_length,
                "skip_tagged_fields": wire.skip_tagged_fields,
            }
        )
        self.pending: list[tuple[str, str]] = []  # (format character, variable) waiting for one unpack

    def write(self, fields: tuple[FieldFacts, ...]) -> Source:
        out = self.out
        with out.block("def decode(buffer, p):"):
            out.add("end = len(buffer)")
            if self.in_slices:
                out.add("elements = 0", f"left = {wire.SLICE_ELEMENTS}")
                out.add("if False: yield")  # a generator, also without a list
            with out.block("try:"):
                built = self.struct(self.message, fields)
                self.flush()
                out.add(f"message = {built}")
            with out.block("except (IndexError, StructError):"):
                out.add(self.refusal("cut short") + " from None")
            with out.block("if p > end:"):
                out.add(self.refusal("cut short"))
            out.add("return message, p, elements" if self.in_slices else "return message, p")
        return out

    def refusal(self, why: str) -> str:
        return f"raise MalformedMessage({f'{self.title}: {why}'!r})"

    # ---- structs

    def struct(self, kind: type[msgspec.Struct], fields: tuple[FieldFacts, ...]) -> str:
        """Reads the fields; the expression that builds the struct from them."""
        values: dict[str, str] = {}
        tagged = []
        for field in fields:
            if self.version not in field.versions:
                values[field.name] = self.default(field)
            elif field.tag is not None:
                tagged.append(field)
            else:
                values[field.name] = self.field(field)
        if self.flexible:
            absent = [f.tag for f in fields if f.tag is not None and self.version not in f.versions]
            self.tagged_fields(tagged, absent, values)
        arguments = ", ".join(values[field.name] for field in fields)
        return f"{self.out.refer(kind.__name__, kind)}({arguments})"

    def default(self, field: FieldFacts) -> str:
        if field.is_list and field.default is not None:
            return "[]"
        if field.struct is not None and field.default is not None:
            return f"{self.out.refer(field.struct.__name__, field.struct)}()"
        return self.out.literal(field.default)

    def tagged_fields(self, tagged: list[FieldFacts], absent: list[int], values: dict[str, str]) -> None:
        out = self.out
        count = out.fresh("tags")
        self.pending.append(("B", count))
        self.flush()
        if not tagged and not absent:
            with out.block(f"if {count}:"):
                self.spend_on_tagged(f"skip_tagged_fields(buffer, {count}, p)")
            return
        for field in tagged:
            values[field.name] = out.fresh(field.name + "_")
            out.add(f"{values[field.name]} = {self.default(field)}")
        tag, size, stop = out.fresh("tag"), out.fresh("size"), out.fresh("stop")
        with out.block(f"if {count}:"):
            self.rest_of_varint(count)
            with out.block(f"if {count} > {wire.TAGGED_FIELDS_MAX}:"):
                out.add(self.refusal("too many tagged fields"))
            self.spend(count)
            with out.block(f"for _ in range({count}):"):
                self.varint(tag)
                self.varint(size)
                out.add(f"{stop} = p + {size}")
                word = "if"
                for field in tagged:
                    with out.block(f"{word} {tag} == {field.tag}:"):
                        value = self.field(field)
                        self.flush()
                        out.add(f"{values[field.name]} = {value}")
                    word = "elif"
                if absent:  # known, but not in this version: Kafka refuses these
                    with out.block(f"{word} {tag} in {tuple(absent)!r}:"):
                        out.add(self.refusal("tag of another version"))
                with out.block("else:"):
                    out.add(f"p = {stop}")
                with out.block(f"if p != {stop}:"):
                    out.add(self.refusal("tagged field of another size than it says"))

    # ---- fields

    def field(self, field: FieldFacts) -> str:
        """Reads one field that this version has; an expression for its value."""
        nullable = self.version in field.nullable
        if field.is_list:
            return self.list_of(field, nullable)
        if field.struct is not None:
            return self.nested(field, nullable)
        if field.wire in wire.STRUCT_FORMATS:
            value = self.out.fresh(field.name + "_")
            self.pending.append((wire.STRUCT_FORMATS[field.wire], value))
            return value
        return self.text_or_bytes(field.wire, field.name, nullable)

    def nested(self, field: FieldFacts, nullable: bool) -> str:
        assert field.struct is not None
        fields = struct_fields(field.struct, self.message)
        if not nullable:
            return self.struct(field.struct, fields)
        marker, value = self.out.fresh("marker"), self.out.fresh(field.name + "_")
        # The marker of a nullable struct is a signed byte; inside a tagged field it is a varint, 0 or 1.
        self.pending.append(("b", marker))
        self.flush()
        absent = f"{marker} <= 0" if field.tag is not None else f"{marker} < 0"
        with self.out.block(f"if {absent}:"):
            self.out.add(f"{value} = None")
        with self.out.block("else:"):
            built = self.struct(field.struct, fields)
            self.flush()
            self.out.add(f"{value} = {built}")
        return value

    def text_or_bytes(self, kind: str, name: str, nullable: bool) -> str:
        out = self.out
        value = out.fresh(name + "_")
        length = self.length("h" if kind == "string" else "i", "rest_of_string_length" if kind == "string" else None)
        with out.block(f"if {length} < 0:"):
            out.add(f"{value} = None" if nullable else self.refusal(f"{name} is null"))
        with out.block("else:"):
            self.spend(f"{length} // {wire.ELEMENT_BYTES}")
            out.add(f"e = p + {length}")
            if kind == "string":
                out.add(f"{value} = str(buffer[p:e], 'utf-8', {wire.TEXT_ERRORS!r})")
            elif kind == "bytes":
                out.add(f"{value} = bytes(buffer[p:e])")
            else:
                out.add(f"{value} = buffer[p:e]")
            out.add("p = e")
        return value

    def list_of(self, field: FieldFacts, nullable: bool) -> str:
        out = self.out
        value = out.fresh(field.name + "_")
        count = self.length("i", None)
        size = self.size_bytes_min(field)
        with out.block(f"if {count} < 0:"):
            out.add(f"{value} = None" if nullable else self.refusal(f"{field.name} is null"))
        # A count that the rest of the buffer cannot hold is refused before anything is built.
        room = f"{count} * {size} > end - p" if size else f"{count} > {wire.EMPTY_ELEMENTS_MAX}"
        with out.block(f"elif {room}:"):
            out.add(self.refusal(f"more {field.name} than bytes"))
        if self.is_request:
            with out.block(f"elif {count} > {wire.ELEMENTS_MAX}:"):
                out.add(self.refusal(f"too many {field.name}"))
        with out.block("else:"):
            if self.in_slices:
                self.count(count)
            if field.wire == "uuid":
                self.spend(count)
                out.add(f"e = p + 16 * {count}")
                out.add(f"{value} = [bytes(buffer[q : q + 16]) for q in range(p, e, 16)]", "p = e")
            elif field.wire in wire.STRUCT_FORMATS:
                self.numbers(value, count, wire.STRUCT_FORMATS[field.wire], size)
            else:
                out.add(f"{value} = []")
                with out.block(f"for _ in range({count}):"):
                    self.spend("1")
                    if field.struct is not None:
                        element = self.struct(field.struct, struct_fields(field.struct, self.message))
                    else:
                        element = self.text_or_bytes(field.wire, field.name + "_element", False)
                    self.flush()
                    out.add(f"{value}.append({element})")
        return value

    def numbers(self, value: str, count: str, code: str, size: int) -> None:
        out = self.out
        few = out.refer("few", wire.few(code, "unpack_from"))
        with out.block(f"if {count} < {wire.FEW}:"):
            out.add(f"{value} = list({few}[{count}](buffer, p))", f"p += {size} * {count}")
        with out.block("else:"):
            if not self.in_slices:
                out.add(f"{value} = list(unpack_from(f'>{{{count}}}{code}', buffer, p))", f"p += {size} * {count}")
                return
            out.add(f"{value} = []", f"e = p + {size} * {count}")
            with out.block("while p < e:"):
                out.add(f"few_of_it = min({count} - len({value}), {wire.SLICE_ELEMENTS})")
                self.spend(f"1 + few_of_it // {wire.ELEMENT_NUMBERS}")
                out.add(f"{value} += unpack_from(f'>{{few_of_it}}{code}', buffer, p)", f"p += {size} * few_of_it")

    # ---- slices

    def count(self, count: str) -> None:
        """Elements of the whole message, which has a limit."""
        self.out.add(f"elements += {count}")
        if self.is_request:
            with self.out.block(f"if elements > {wire.ELEMENTS_MAX}:"):
                self.out.add(self.refusal("too many elements"))

    def spend(self, cost: str) -> None:
        """What is read next costs as much as so many elements: pause first, if they do not fit into this slice."""
        if not self.in_slices:
            return
        self.out.add(f"left -= {cost}")
        with self.out.block("if left < 0:"):
            self.out.add(f"left += {wire.SLICE_ELEMENTS}", "yield")

    def spend_on_tagged(self, skipping: str) -> None:
        if not self.in_slices:
            self.out.add(f"p = {skipping}")
            return
        start = self.out.fresh("q")
        self.out.add(f"{start} = p", f"p = {skipping}")
        self.spend(f"(p - {start}) // {wire.ELEMENT_TAGGED_BYTES}")

    # ---- lengths

    def length(self, code: str, rest: str | None) -> str:
        """Reads a length or a count; negative is null."""
        name = self.out.fresh("n")
        if not self.flexible:
            self.pending.append((code, name))
            self.flush()
            return name
        self.pending.append(("B", name))
        self.flush()
        self.rest_of_varint(name, rest or "rest_of_varint")
        self.out.add(f"{name} -= 1")
        return name

    def varint(self, name: str) -> None:
        self.out.add(f"{name} = buffer[p]", "p += 1")
        self.rest_of_varint(name)

    def rest_of_varint(self, name: str, rest: str = "rest_of_varint") -> None:
        with self.out.block(f"if {name} > 127:"):
            self.out.add(f"{name}, p = {rest}(buffer, {name}, p)")

    def flush(self) -> None:
        if not self.pending:
            return
        names = ", ".join(name for _, name in self.pending)
        formats = "".join(code for code, _ in self.pending)
        self.pending.clear()
        if formats == "B":
            self.out.add(f"{names} = buffer[p]", "p += 1")
            return
        unpack, size = self.out.packer(formats, "unpack_from")
        comma = "," if "," not in names else ""
        self.out.add(f"{names}{comma} = {unpack}(buffer, p)", f"p += {size}")

    # ---- sizes

    def size_bytes_min(self, field: FieldFacts) -> int:
        """How many bytes one element of a list takes at the least."""
        if field.struct is None:
            return self.scalar_bytes_min(field.wire)
        return self.struct_bytes_min(field.struct)

    def scalar_bytes_min(self, kind: str) -> int:
        if kind in wire.STRUCT_FORMATS:
            return struct.calcsize(">" + wire.STRUCT_FORMATS[kind])
        if self.flexible:
            return 1
        return 2 if kind == "string" else 4

    def struct_bytes_min(self, kind: type[msgspec.Struct]) -> int:
        total = 1 if self.flexible else 0
        for field in struct_fields(kind, self.message):
            if self.version not in field.versions or field.tag is not None:
                continue
            if field.is_list:
                total += 1 if self.flexible else 4
            elif field.struct is None:
                total += self.scalar_bytes_min(field.wire)
            else:
                total += 1 if self.version in field.nullable else self.struct_bytes_min(field.struct)
        return total
