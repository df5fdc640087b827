"""NUMA nodes: their processors, and memory from one of them alone.

The C library has no function that binds memory, and libnuma is not on every host; so the kernel is called by number.
"""

import ctypes
import os
import platform
import re
from pathlib import Path
from typing import Dict, Set

from launch.agent.linux.procfs import names_in, text_of

NODES = Path("/sys/devices/system/node")
_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237, "ppc64le": 261}  # by machine
_MPOL_BIND = 2
_MOST_NODES = 1024
_libc = ctypes.CDLL(None, use_errno=True)


def nodes(folder: Path = NODES) -> Dict[int, Set[int]]:
    """Return the processors of each node; none on a kernel that knows no nodes."""
    found = (re.fullmatch(r"node(\d+)", name) for name in names_in(folder))
    return {int(each.group(1)): processors_in(text_of(folder / each.group() / "cpulist")) for each in found if each}


def processors_in(text: str) -> Set[int]:
    """Return the numbers in a list of the kernel: ``0-3,8``."""
    ranges = (part.partition("-") for part in text.strip().split(",") if part)
    return {number for first, _, last in ranges for number in range(int(first), int(last or first) + 1)}


def bind_memory(node: int) -> None:
    """Have this process, and its children, take memory from one node alone. Raises OSError."""
    number = _SET_MEMPOLICY.get(platform.machine())
    if number is None:
        raise OSError(f"no memory is bound to a NUMA node on {platform.machine()}")
    bits = 8 * ctypes.sizeof(ctypes.c_ulong)
    mask = (ctypes.c_ulong * (_MOST_NODES // bits))()
    mask[node // bits] = 1 << node % bits
    # One more than there are bits: the kernel takes one less than it is given.
    if _libc.syscall(number, _MPOL_BIND, mask, ctypes.c_ulong(_MOST_NODES + 1)):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
