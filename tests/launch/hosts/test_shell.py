"""A program on a host, as it is named to a shell there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from launch.hosts import rpc
from launch.hosts.channel import cause, command_line
from launch.hosts.relay import MARK, relay_argv
from launch.openssh import openssh_host
from tests.support.waiting import PATIENCE_S

SHELLS = [shell for shell in ("sh", "bash", "zsh", "csh", "tcsh", "fish", "nu") if shutil.which(shell)]
OURS = [
    command_line(["python3", *rpc._PROGRAM]),
    command_line(relay_argv("~/.launch/env/bin/python", 6006)),
    openssh_host._STAY,
]


@pytest.mark.parametrize("line", OURS, ids=["agent", "relay", "login"])
def test_our_programs_have_no_character_that_some_login_shell_reads_otherwise(line: str) -> None:
    """Between single quotes, csh reads ``!`` and a line end, fish a backslash; nushell joins no quoted parts."""
    assert not set("!\\\n") & set(line)
    assert line.count("'") == 2 and set('$`"*?(){}[]|&;<>#') & set(line.split("'")[0] + line.split("'")[2]) == set()


@pytest.mark.parametrize("shell", SHELLS)
def test_our_programs_start_in_each_login_shell_of_this_machine(shell: str, tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path)}

    def printed(line: str, data: bytes) -> bytes:
        ran = subprocess.run(
            [shell, "-c", line], input=data, stdout=subprocess.PIPE, timeout=PATIENCE_S, env=environ, check=False
        )
        return ran.stdout

    agent = command_line([sys.executable, *rpc._PROGRAM])
    assert printed(agent, b'print("in")'.ljust(len(rpc.RECEIVER))) == rpc.MARK + b"in\n"
    assert printed(openssh_host._STAY, b"kept") == openssh_host._IN.encode() + b"\nkept"
    assert MARK not in printed(command_line(relay_argv(sys.executable, 1)), b"")


@pytest.mark.parametrize(
    ("complaint", "reason"),
    [
        ("sh: 1: module: not found", "sh: 1: module: not found"),
        ("Welcome\nmodule: Command not found.\n", "module: Command not found."),
        (
            "fish: Unknown command: module\nmodule load x </dev/null && exec py\n^~~~~^\n",
            "fish: Unknown command: module",
        ),
        ("", ""),
    ],
)
def test_the_cause_is_the_line_that_has_the_reason_also_from_fish(complaint: str, reason: str) -> None:
    assert cause(complaint) == reason


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
