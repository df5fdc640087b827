"""``launch import`` prints what docs/import.md says it does."""

import re
import shlex
from pathlib import Path
from typing import Dict, List, NamedTuple

import pytest
from click.testing import CliRunner

from cluster.spec import load
from launch.cli import cli
from launch.errors import USAGE
from tests.support import ROOT
from tests.support.launch.launcher import run_here

PAGE = (ROOT / "docs" / "import.md").read_text()


class Example(NamedTuple):
    """A command of the page, the host file or variables before it, and what it prints."""

    given: Dict[str, str]
    command: str
    printed: str


def examples() -> List[Example]:
    given: Dict[str, str] = {}
    found = []
    for language, text in re.findall(r"^```(hostfile|slurm|lsf|sh|yaml)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        given[language] = text
        if language == "yaml":
            found.append(Example(given, given.pop("sh").strip(), text))
            given = {}
    return found


def test_the_page_has_an_example_of_each_source() -> None:
    found = ["".join(sorted({*example.given} - {"yaml"})) for example in examples()]
    assert found == ["hostfile", "", "", "slurm", "slurm", "lsf"]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.command)
def test_every_example_prints_what_the_page_shows(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hostfile").write_text(example.given.get("hostfile", ""))
    for line in (example.given.get("slurm", "") + example.given.get("lsf", "")).splitlines():
        monkeypatch.setenv(*line.split("=", 1))
    program, *arguments = shlex.split(example.command)
    ran = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert (program, ran.exception, ran.output) == ("launch", None, example.printed)
    Path("hosts.yaml").write_text(ran.output)
    spec = load("hosts.yaml")
    assert spec.job == "digits" or spec.command is not None


def refused(*arguments: str) -> str:
    """What is printed on stderr alone."""
    ran = run_here("import", *arguments)
    assert (ran.returncode, ran.stdout) == (USAGE, "")
    return str(ran.stderr)


@pytest.mark.parametrize("arguments", [[], ["hostfile", "--slurm"], ["-H", "a:1", "--slurm"], ["--pbs", "--lsf"]])
def test_none_or_two_sources_are_refused(arguments: List[str]) -> None:
    error = refused("--job", "digits", *arguments)
    assert error.startswith("launch import: expected one of HOSTFILE, --hosts, --slurm, --pbs, --sge and --lsf, found")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "launch import: expected one of --job and --command, found none"),
        (["--job", "a", "--command", "b"], "launch import: expected one of --job and --command, found --job and --com"),
        (["--command", "'"], "--command: expected words as in a shell, found"),
        (["--command", "x {indx}"], "the generated hosts file is invalid:\nthe hosts file:2:16: command[1]: expected"),
        (["--job", "a", "--ps", "2"], "--ps: expected at most one ps on each of the 1 hosts, found 2; see --ps-hosts"),
    ],
)
def test_a_job_or_a_command_is_needed(arguments: List[str], message: str) -> None:
    assert refused("-H", "a:1", *arguments).startswith(message)


def test_a_batch_job_needs_the_meaning_of_its_slots_for_a_job_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LSB_MCPU_HOSTS", "a 4")
    error = refused("--lsf", "--job", "digits")
    assert error.startswith("launch import: expected --slots, found none; a slot of LSF may be a processor core")
    assert '{host: "a", count: 4}' in run_here("import", "--lsf", "--command", "x").stdout


@pytest.mark.parametrize("more", [["--ps", "1"], ["--ps-hosts", "cpu1"]])
def test_the_groups_of_a_heterogeneous_job_are_not_overridden(more: List[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for group, nodes in enumerate(["cpu1", "gpu1"]):
        monkeypatch.setenv(f"SLURM_JOB_NODELIST_HET_GROUP_{group}", nodes)
    assert "group 0 of the job is for the ps" in refused("--slurm", "--job", "digits", *more)


@pytest.mark.parametrize(
    ("hosts", "more", "lines"),
    [
        ("me@a,you@b,c", [], ["Host a", "    User me", "Host b", "    User you"]),
        ("me@a,me@b", ["--ps-hosts", "cpu1"], ["Host a b", "    User me"]),
        ("me@a,me@b", [], []),  # in the file
        ("a,b", [], []),
    ],
)
def test_users_that_the_file_cannot_name_are_printed_for_ssh(hosts: str, more: List[str], lines: List[str]) -> None:
    ran = run_here("import", "-H", hosts, "--job", "digits", *more)
    printed = ran.stderr.splitlines()
    assert printed[1:] == lines and ran.returncode == 0
    assert not lines or "begin ~/.ssh/config with these lines" in printed[0]
    assert ('ssh: {user: "me"}' in ran.stdout) == (hosts == "me@a,me@b" and not more)
