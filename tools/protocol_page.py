"""Writes docs/protocol.md: which APIs of Kafka 4.3 are served, at which versions, and what is not. A test compares."""

from __future__ import annotations

from pathlib import Path

from headpond.protocol.apis import APIS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "protocol.md"

_NO_TOKENS = "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as on every listener without authentication"
_NO_AUTHORIZER = "SECURITY_DISABLED, as without an authorizer"
_NO_QUORUM = "never: there is no KRaft quorum"

NOTES = {
    0: "0-2 are advertised, as Kafka does for old librdkafkas, and close the connection",
    1: "fetch sessions included; fetches of followers are refused",
    10: "COORDINATOR_NOT_AVAILABLE for share groups",
    17: "ILLEGAL_SASL_STATE: no listener speaks SASL yet",
    29: _NO_AUTHORIZER,
    30: _NO_AUTHORIZER,
    31: _NO_AUTHORIZER,
    36: "ILLEGAL_SASL_STATE: no listener speaks SASL yet",
    38: _NO_TOKENS,
    39: _NO_TOKENS,
    40: _NO_TOKENS,
    41: _NO_TOKENS,
    43: "ELECTION_NOT_NEEDED: every partition has one replica, which leads it",
    46: "none is ever under way",
    48: "no client has a quota",
    50: "no user has SCRAM credentials",
    55: _NO_QUORUM,
    71: "not advertised by Kafka either, without a telemetry receiver",
    72: "not advertised by Kafka either, without a telemetry receiver",
    80: _NO_QUORUM,
    81: _NO_QUORUM,
}


def page() -> str:
    lines = [
        "# The protocol, API by API",
        "",
        "<!-- Made by tools/protocol_page.py: change the handlers, not this page. -->",
        "",
        "What a client finds in the answer to ApiVersions. The codec knows every client-facing message of Kafka 4.3 in",
        "all its versions; an API without a handler is not advertised, and a request for it closes the connection, as",
        "Kafka does with keys that it does not know. A note with an error's name: so answers a Kafka that is not",
        "configured for the feature. Which errors the APIs of groups and transactions answer with, and why, is in",
        "[errors-transactions-and-groups.md](errors-transactions-and-groups.md).",
        "",
        "| key | API | Kafka 4.3 | served | notes |",
        "| --: | --- | --- | --- | --- |",
    ]
    for key, api in sorted(APIS.items()):
        served = _range(api.versions) if api.served_in is not None else ""
        note = NOTES.get(key, "" if served else "not yet")
        lines.append(f"| {key} | {api.name} | {_range(api.advertised)} | {served} | {note} |")
    return "\n".join(lines) + "\n"


def _range(versions: range) -> str:
    return f"{versions[0]}-{versions[-1]}" if len(versions) > 1 else str(versions[0])


if __name__ == "__main__":
    PAGE.write_text(page())
