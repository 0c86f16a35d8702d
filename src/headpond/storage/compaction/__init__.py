"""Compaction: a keyed topic keeps the latest value of each key.

    choice.py     which log next, and how much of it          on the loop, pure
    compactor.py  the loop: choose, clean, swap, note         on the loop
    swap.py       cleaned files take the place of old ones    on the loop, its files in a worker
    job.py        what goes to the worker process and what comes back
    cleaner.py    one cleaning: map the keys, filter, write   in the worker process
    key_map.py · keys.py · filtering.py · batch_walk.py · groups.py · output.py     its parts

    [ clean: one value per key | dirty: cleaned next | not yet: above the last stable offset, too young, active ]
    ^ log start                ^ first dirty         ^ first uncleanable

A crash at any moment leaves the old segments or the new ones, never a mixture; what had not become visible is removed
at the next start (``leftovers``) and done again.
"""
