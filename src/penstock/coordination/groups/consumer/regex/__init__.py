"""Regular expressions for the names of topics and transactional ids: RE2's syntax, as Kafka takes it, in linear time.

Python's own would do the matching, but it backtracks: a client could hold the broker for years with ``(a+)+b``. Names
of topics have few characters and are short, so the machine here is small; for other texts it is told what they consist
of (``Texts``).

syntax.py    text to tree, with RE2's complaints          classes.py   \\d, [[:alpha:]], \\p{Lu} and the like
tree.py      what the parser builds                       machine.py   tree to machine, and names through it
"""

from penstock.coordination.groups.consumer.regex.machine import Regex
from penstock.coordination.groups.consumer.regex.tree import InvalidRegex, Texts

__all__ = ["InvalidRegex", "Regex", "Texts"]
