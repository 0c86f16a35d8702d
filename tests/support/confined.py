"""Runs a command under what a unit file demands of the kernel: ``confined.py FILTER FAMILIES COMMAND...``.

FILTER      a file with the names of the system calls that are allowed, one per line; all others fail with EPERM, and
            those with a "!" before their names end the process
FAMILIES    the numbers of the address families that sockets may have, with commas between them
No memory becomes executable that is writable or was (PR_SET_MDWE), and no program gains privileges.
Ends with 77 where this kernel or its libraries can't do it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys

CANT = 77
PR_SET_NO_NEW_PRIVS, PR_SET_MDWE = 38, 65
ALLOW, REFUSE_WITH_EPERM, END_PROCESS = 0x7FFF0000, 0x00050000 | 1, 0x80000000
EQUAL = 4


class Comparison(ctypes.Structure):
    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


def main(filter_file: str, families: str, *command: str) -> None:
    library = ctypes.util.find_library("seccomp")
    libc = ctypes.CDLL(None, use_errno=True)
    if library is None or libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_MDWE, 1, 0, 0, 0):
        sys.exit(CANT)
    seccomp = ctypes.CDLL(library)
    seccomp.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(REFUSE_WITH_EPERM)))
    with open(filter_file) as file:
        names = file.read().split()
    lethal = {name[1:] for name in names if name.startswith("!")}
    for name in {*names, *lethal} - {"socket"}:
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:
            action = END_PROCESS if name in lethal else ALLOW
            seccomp.seccomp_rule_add_array(rules, ctypes.c_uint32(action), number, 0, None)
    number = seccomp.seccomp_syscall_resolve_name(b"socket")
    for family in families.split(","):
        one = (Comparison * 1)(Comparison(0, EQUAL, int(family), 0))
        seccomp.seccomp_rule_add_array(rules, ctypes.c_uint32(ALLOW), number, 1, one)
    if seccomp.seccomp_load(rules):
        sys.exit(CANT)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
