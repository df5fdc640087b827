"""tests/fresh.sh runs a command as on a machine where nobody installed anything, and leaves nothing of it."""

import os
import subprocess
from pathlib import Path

from tests.support.hosts.fixture import skip_without

SCRIPT = Path(__file__).with_name("fresh.sh")
LOOK = """
id -u
ls -A "$HOME" | wc -l
command -v sshd ssh ssh-keygen nft ip tc ps chromium
test -e Makefile && test ! -e .venv && touch tests/mine && echo own copy
sleep 1000 &
"""


def test_a_command_meets_no_rights_no_packages_an_empty_home_and_a_copy_of_its_own(tmp_path: Path) -> None:
    skip_without()
    ran = subprocess.run(
        [str(SCRIPT), "sh", "-c", LOOK],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert ran.stdout.splitlines() == ["54321", "0", "own copy"], ran.stderr
    assert not SCRIPT.with_name("mine").exists()
    assert list(tmp_path.iterdir()) == []
