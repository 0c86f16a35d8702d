"""A member of a group as a process: does what each line of its stdin says, and answers with a line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.clients.members import Member, make_member


def answer(member: Member, asked: str) -> Any:
    if asked == "poll":
        return [[each.partition, each.offset, each.value.decode()] for each in member.poll()]
    if asked == "assignment":
        return sorted(member.assignment())
    return getattr(member, asked)()


def main(options: dict[str, Any]) -> None:
    member = make_member(**options)
    for line in sys.stdin:
        try:
            said = {"answer": answer(member, line.strip())}
        except Exception as error:
            said = {"error": repr(error)}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
