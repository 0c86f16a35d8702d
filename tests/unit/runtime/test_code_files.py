"""The program's own files can be read when clients have taken all descriptors."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import importlib, os, resource, sys
from headpond.runtime.code_files import KeptCodeFiles

def can_import(name):
    try:
        importlib.import_module(name)
        return True
    except OSError:
        return False

resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
files = KeptCodeFiles()
taken = []
try:
    while True:
        taken.append(os.dup(1))
except OSError:
    pass
found = [can_import("wave")]
with files.within_reach():
    found.append(can_import("wave"))
found.append(can_import("chunk"))
files.all_read()
found += [can_import("chunk"), resource.getrlimit(resource.RLIMIT_NOFILE)[0]]
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 64))
with files.within_reach():
    found.append(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
os.write(1, repr(found).encode())
"""


def test_modules_can_be_imported_when_all_other_descriptors_are_taken() -> None:
    output = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True, timeout=60).stdout
    assert eval(output) == [False, True, False, True, 64, 32], "a limit that was set from outside stays as it is"
