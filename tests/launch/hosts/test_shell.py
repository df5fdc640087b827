"""A program on a host, as it is named to a shell there."""

import subprocess
from pathlib import Path
from typing import List

import pytest

from launch.hosts.channel import command_line


@pytest.mark.parametrize(
    "argv",
    [["echo", "a b", "$HOME", "'", '"', "`x`", "\\", "a;b", "*", "", "ä\n"], ["echo", "-c", "import base64;exec('1')"]],
)
def test_words_reach_a_program_through_a_shell_as_they_are(argv: List[str]) -> None:
    script = 'for word in "$@"; do printf "%s\\0" "$word"; done'
    line = command_line(["sh", "-c", script, *argv])
    ran = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, check=True)
    assert ran.stdout.decode().split("\0")[:-1] == argv[1:]


def test_commands_before_a_program_set_its_environment_and_read_nothing_of_its_input() -> None:
    line = command_line(["sh", "-c", "echo $A $B; cat"], ["export A=1", "cat", "export B=2"])
    ran = subprocess.run(["sh", "-c", line], input=b"whole", stdout=subprocess.PIPE, check=True)
    assert ran.stdout == b"1 2\nwhole"


def test_a_program_is_not_run_after_a_command_that_fails() -> None:
    line = command_line(["echo", "begun"], ["echo first", "no_such_command", "echo second"])
    ran = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert (ran.returncode, ran.stdout) == (127, b"first\n")


def test_a_tilde_at_the_front_means_home_over_there(tmp_path: Path) -> None:
    program = tmp_path / "my env" / "python"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho $1\n")
    program.chmod(0o755)
    line = command_line(["~/my env/python", "~"])
    ran = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, check=True, env={"HOME": str(tmp_path)})
    assert ran.stdout == b"~\n"
