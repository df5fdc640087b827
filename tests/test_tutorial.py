"""The tutorial, command by command, in an empty home: what each prints is what the page shows."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, Sequence, Tuple

import pytest

from launch.agent.linux.sockets import free_ports
from launch.verbs import init
from tests.support import ROOT
from tests.support.waiting import PATIENCE_S

PAGE = (ROOT / "docs" / "tutorial.md").read_text()
BUILDS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)  # tests/test_fresh.py builds an environment
CONSOLE = re.compile(r"^```console\n\$ (.*)\n((?:.*\n)*?)```", re.MULTILINE)
SHOWN = CONSOLE.findall(PAGE)
GRID = CONSOLE.findall((ROOT / "docs" / "grid.md").read_text())
# The launcher of this checkout. Ports are free ones: tests beside this one take the first ports, too.
PROGRAM = f"""#!/bin/sh
test "$1" = up && set -- "$@" --set cluster.ps='[localhost:%d]' --set cluster.worker='[localhost:%d, localhost:%d]'
PYTHONPATH={ROOT} exec {sys.executable} -m launch "$@"
"""


@pytest.fixture
def home(tmp_path: Path) -> Dict[str, str]:
    """The environment of a user with an empty home."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "launch").write_text(PROGRAM % tuple(free_ports(3)))
    (tmp_path / "bin" / "launch").chmod(0o755)
    (tmp_path / "home").mkdir()
    path = f"{tmp_path}/bin:{Path(sys.executable).parent}:/usr/bin:/bin"
    return {"HOME": str(tmp_path / "home"), "PATH": path, "TF_CPP_MIN_LOG_LEVEL": "3", "LANG": "C.UTF-8"}


def as_pattern(shown: str) -> str:
    """A regular expression of an output, in which ``…`` stands for anything, and a line of its own for any lines."""
    lines = ["(?:.*\n)*" if line == "…" else re.escape(line).replace("…", ".+") + "\n" for line in shown.splitlines()]
    return "".join(lines)


def test_every_command_prints_what_the_page_shows(home: Dict[str, str]) -> None:
    assert len(SHOWN) == PAGE.count("```console")
    replay(SHOWN, home)


@pytest.mark.nightly  # TensorFlow starts twelve times; tests/launch/end_to_end/test_grid.py has a grid without it
def test_eight_commands_lead_from_an_empty_folder_to_the_best_of_a_grid(home: Dict[str, str]) -> None:
    assert sum(len(block.splitlines()) for block in BUILDS) + len(GRID) <= 8
    rows = init.texts("houses")["data.csv"].splitlines()[:300]
    (Path(home["HOME"]) / "my-houses.csv").write_text("\n".join(rows) + "\n")
    replay(GRID, home)


def replay(examples: Sequence[Tuple[str, str]], home: Dict[str, str]) -> None:
    """Run each command; its output is what the page shows."""
    for command, shown in examples:
        ran = subprocess.run(
            ["sh", "-c", command], cwd=home["HOME"], env=home, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        assert ran.returncode == 0, (command, ran.stdout, ran.stderr)
        assert re.fullmatch(as_pattern(shown), ran.stdout), (command, ran.stdout, ran.stderr)
    assert {name for name in os.listdir(home["HOME"]) if not name.startswith(".")} <= {"houses", "my-houses.csv"}


def test_the_way_from_a_clone_has_eight_commands_at_most() -> None:
    assert sum(len(block.splitlines()) for block in BUILDS) + len(SHOWN) <= 8
