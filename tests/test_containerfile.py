"""The image for hosts, checked without a container runtime: its instructions, its shell lines, the files it copies."""

import json
import re
import subprocess
from typing import List, Tuple

import pytest

from tests.support import ROOT

TEXT = (ROOT / "Containerfile").read_text()
KNOWN = {"ARG", "FROM", "RUN", "COPY", "ENV", "CMD"}


def instructions() -> List[Tuple[str, str]]:
    """The (name, rest) of each instruction, with its continued lines joined."""
    lines = [line for line in TEXT.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


def shell_lines() -> List[str]:
    """What a shell gets, when the image is built and when it runs."""
    command = json.loads(dict(instructions())["CMD"])
    assert command[:2] == ["sh", "-c"]
    return [*(rest for name, rest in instructions() if name == "RUN"), command[2]]


def test_every_instruction_is_known_and_the_base_comes_first() -> None:
    names = [name for name, _ in instructions()]
    assert set(names) <= KNOWN and names[:2] == ["ARG", "FROM"] and names[-1] == "CMD"


@pytest.mark.parametrize("line", shell_lines(), ids=lambda line: line.split()[0])
def test_a_shell_can_parse_every_line_for_it(line: str) -> None:
    ran = subprocess.run(["sh", "-n", "-c", line], stderr=subprocess.PIPE, text=True, timeout=20)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("lock", ["tf1", *re.findall(r"LOCK=(\w+) \.", TEXT)])
def test_every_file_that_is_copied_exists_for_each_lock(lock: str) -> None:
    sources = [rest.split()[0].replace("${LOCK}", lock) for name, rest in instructions() if name == "COPY"]
    assert sources and all((ROOT / source).is_file() for source in sources)


def test_packages_are_those_of_the_lock_and_no_host_key_is_in_the_image() -> None:
    runs = " ".join(shell_lines())
    assert "--require-hashes --no-deps" in runs
    assert "rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*" in runs and "ssh-keygen -A" in shell_lines()[-1]
    assert "PasswordAuthentication=no" in shell_lines()[-1]
