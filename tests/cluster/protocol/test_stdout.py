"""A task whose log is on a full disk goes on, and its log goes on when there is room again."""

import os
import subprocess
import sys
from pathlib import Path

TALKS = """
import resource, sys
from cluster.runtime.process import outlive_full_disk
outlive_full_disk()
print("before")
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
for _ in range(100):
    print("x" * 100, flush=True)
    print("y" * 100, file=sys.stderr, flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print("after")
"""


def test_what_there_is_no_room_for_is_lost_and_nothing_else_happens(tmp_path: Path) -> None:
    with open(str(tmp_path / "log"), "ab") as log:
        done = subprocess.run([sys.executable, "-c", TALKS], stdout=log, stderr=log, timeout=120)
    lines = (tmp_path / "log").read_text().splitlines()
    assert done.returncode == 0
    assert lines[0] == "before" and lines[-1].endswith("after") and os.path.getsize(str(tmp_path / "log")) < 5000


def test_a_reader_that_has_gone_ends_the_program_as_ever() -> None:
    code = "from cluster.runtime.process import outlive_full_disk; outlive_full_disk(); print('x')"
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, timeout=120)
    finally:
        os.close(writing)
    assert done.returncode != 0 and b"BrokenPipeError" in done.stderr
