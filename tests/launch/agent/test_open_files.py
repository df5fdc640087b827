"""The limit on open files: raised where many are needed, never lowered, never beyond what the system lets."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "now"), [(64, 4096, 2000, 2000), (64, 512, 2000, 512), (1024, 4096, 300, 1024)]
)
def test_the_limit_is_raised_as_far_as_needed_and_allowed(soft: int, hard: int, wanted: int, now: int) -> None:
    text = (
        "import resource; from launch.agent.open_files import allow_open_files as allow;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard})); allow({wanted});"
        "print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    ran = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, check=True)
    assert ran.stdout.split() == [b"%d" % now, b"%d" % hard]
