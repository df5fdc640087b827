"""Freed memory goes back to the system, in a process of its own."""

import subprocess
import sys

_PROGRAM = """
import ctypes, os, sys, time
from cluster.runtime.process import trim_memory_every

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = [libc.malloc(8192) for _ in range(1 << 13)]
for block in blocks:
    ctypes.memset(block, 1, 8192)
for block in blocks[:-1]:  # the last one keeps the heap from shrinking
    libc.free(block)
kept = resident()
if sys.argv[1] == "trims":
    trim_memory_every(0.01)
ends = time.monotonic() + 20
while resident() > kept - (48 << 20) and time.monotonic() < ends and sys.argv[1] == "trims":
    time.sleep(0.01)
print(kept - resident() >> 20)
"""


def returned(how: str) -> int:
    """MiB of 64 that a process gives back after it has freed them."""
    ran = subprocess.run([sys.executable, "-c", _PROGRAM, how], capture_output=True, text=True, check=True)
    return int(ran.stdout)


def test_a_process_that_trims_returns_freed_blocks_which_the_c_library_would_keep() -> None:
    assert returned("keeps") <= 4
    assert returned("trims") >= 48
