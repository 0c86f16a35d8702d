"""ApiVersions, SaslHandshake, and what is no request at all: answered, or the connection is closed."""

from __future__ import annotations

import struct

from parity.notation import ALL, Raw, Script, ask
from support.wire import request_header

FEATURES = ["supported_features", "finalized_features"]


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def request(key: int, version: int, body: bytes = b"", *, flexible: bool = False) -> bytes:
    return framed(request_header(key, version, 7, "parity", flexible=flexible) + body)


METADATA, API_VERSIONS, CREATE_TOPICS, PRODUCE, FETCH = 3, 18, 19, 0, 1

SCRIPTS = [
    Script(
        "what is advertised",
        [
            ask(
                "ApiVersions",
                versions=ALL,
                client_software_name="parity",
                client_software_version="1.0",
                unordered=FEATURES,
            )
        ],
    ),
    Script(
        "the name of the client's software",
        [
            ask(
                "ApiVersions",
                f"{name!r} {version!r}",
                versions=[3, 4],
                client_software_name=name,
                client_software_version=version,
                unordered=FEATURES,
            )
            for name, version in [
                ("", "1"),
                ("a", ""),
                ("-a", "1"),
                ("a-", "1"),
                ("a.b-c", "1.2-rc1"),
                ("a b", "1"),
                ("a", ".1"),
                ("é", "1"),
                ("a\n", "1"),
            ]
        ],
    ),
    Script(
        "an ApiVersions of the future",
        [
            Raw(f"v{version}", request(API_VERSIONS, version, body), ("ApiVersions", 0))
            for version, body in [(5, b""), (5, b"\1\1\0"), (32_767, b""), (-1, b"")]
        ],
    ),
    Script(
        "SASL where there is none",
        [
            ask("SaslHandshake", versions=ALL, mechanism="PLAIN"),
            ask("SaslHandshake", "a mechanism of fancy", versions=ALL, mechanism="FANCY"),
            ask("SaslHandshake", "no mechanism", versions=ALL, mechanism=""),
            ask("SaslAuthenticate", versions=ALL, auth_bytes=b"\0user\0secret"),
            ask("SaslAuthenticate", "without a word", versions=ALL, auth_bytes=b""),
            ask("Metadata", "the connection still works", topics=[]),
        ],
    ),
    Script(
        "keys that nobody knows",
        [Raw(f"key {key}", request(key, 0)) for key in (-1, 4, 5, 6, 7, 58, 93, 500, 32_767)],
    ),
    Script(
        "versions that nobody serves",
        [
            Raw(f"key {key} version {version}", request(key, version))
            for key, version in [
                (PRODUCE, 0),
                (PRODUCE, 2),
                (PRODUCE, 14),
                (PRODUCE, -1),
                (FETCH, 3),
                (FETCH, 19),
                (2, 0),
                (2, 12),
                (METADATA, 14),
                (METADATA, -1),
                (10, 7),
                (17, 2),
                (CREATE_TOPICS, 1),
                (CREATE_TOPICS, 8),
                (20, 0),
                (20, 7),
                (21, 3),
                (22, 7),
                (23, 1),
                (23, 5),
                (32, 0),
                (32, 5),
                (33, 3),
                (35, 0),
                (35, 6),
                (37, 4),
                (44, 2),
                (60, 3),
                (74, 2),
                (75, 1),
            ]
        ],
    ),
    Script(
        "frames that are none",
        [
            Raw("a length of zero", struct.pack(">i", 0)),
            Raw("a negative length", struct.pack(">i", -1)),
            Raw("a length beyond the limit", struct.pack(">i", 104_857_601)),
            Raw("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            Raw("TLS", bytes.fromhex("160301007a010000760303") + bytes(120)),
            Raw("a header cut short", framed(b"\0\3\0\1")),
            Raw("no header", framed(b"\0")),
            Raw("a client id longer than the frame", framed(struct.pack(">hhih", METADATA, 1, 7, 99) + b"abc")),
            Raw("a client id of length -2", framed(struct.pack(">hhih", METADATA, 1, 7, -2) + b"\0\0\0\0")),
        ],
    ),
    Script(
        "bodies that end too early or say nonsense",
        [
            Raw("Metadata v1 without a body", request(METADATA, 1)),
            Raw("Metadata v1: -2 topics", request(METADATA, 1, struct.pack(">i", -2))),
            Raw("Metadata v1: more topics than bytes", request(METADATA, 1, struct.pack(">i", 1 << 30))),
            Raw("Metadata v1: a topic's name is null", request(METADATA, 1, struct.pack(">ih", 1, -1))),
            Raw(
                "Metadata v1: a topic's name is not UTF-8",
                request(METADATA, 1, struct.pack(">ih", 1, 2) + b"\xff\xfe"),
                ("Metadata", 1),
            ),
            Raw("Metadata v0: null topics", request(METADATA, 0, struct.pack(">i", -1))),
            Raw(
                "Metadata v9: tagged fields that go on forever",
                request(METADATA, 9, b"\1\1\0\0\0" + b"\xff" * 12, flexible=True),
            ),
            Raw("CreateTopics v2 without a body", request(CREATE_TOPICS, 2)),
            Raw("Produce v3 without a body", request(PRODUCE, 3)),
            Raw("Fetch v4 without a body", request(FETCH, 4)),
            Raw("Fetch v4: -1 topics", request(FETCH, 4, struct.pack(">iiiibi", -1, 0, 0, 1 << 20, 0, -1))),
            Raw("ApiVersions v3 without a body", request(API_VERSIONS, 3, flexible=True)),
            Raw("SaslHandshake v1: a null mechanism", request(17, 1, struct.pack(">h", -1))),
        ],
    ),
    Script(
        "bytes behind a request, and tagged fields that nobody knows",
        [
            Raw("ApiVersions v0 and three bytes", request(API_VERSIONS, 0, b"abc"), ("ApiVersions", 0)),
            Raw("Metadata v1 and three bytes", request(METADATA, 1, struct.pack(">i", 0) + b"abc"), ("Metadata", 1)),
            Raw(
                "Metadata v9 with a tagged field",
                request(METADATA, 9, b"\1\1\0\0\1\x63\1x", flexible=True),
                ("Metadata", 9),
            ),
            Raw(
                "Metadata v9 with a tagged field in its header",
                framed(request_header(METADATA, 9, 7, "p", flexible=False) + b"\1\x63\1x" + b"\1\1\0\0\0"),
                ("Metadata", 9),
            ),
            Raw(
                "no client id",
                framed(request_header(METADATA, 1, 7, None, flexible=False) + struct.pack(">i", 0)),
                ("Metadata", 1),
            ),
        ],
    ),
]
