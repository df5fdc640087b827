"""``launch import`` prints what docs/import.md says it does."""

import re
import shlex
from pathlib import Path
from typing import Dict, List, NamedTuple

import pytest
from click.testing import CliRunner

from cluster.spec import load
from launch.cli import cli
from launch.errors import UsageError
from tests.support import ROOT

PAGE = (ROOT / "docs" / "import.md").read_text()


class Example(NamedTuple):
    """A command of the page, the host file or variables before it, and what it prints."""

    given: Dict[str, str]
    command: str
    printed: str


def examples() -> List[Example]:
    given: Dict[str, str] = {}
    found = []
    for language, text in re.findall(r"^```(hostfile|slurm|sh|yaml)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        given[language] = text
        if language == "yaml":
            found.append(Example(given, given.pop("sh").strip(), text))
            given = {}
    return found


def test_the_page_has_an_example_of_each_source() -> None:
    assert [sorted(example.given) for example in examples()] == [["hostfile", "yaml"], ["yaml"], ["slurm", "yaml"]]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.command)
def test_every_example_prints_what_the_page_shows(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hostfile").write_text(example.given.get("hostfile", ""))
    for line in example.given.get("slurm", "").splitlines():
        monkeypatch.setenv(*line.split("=", 1))
    program, *arguments = shlex.split(example.command)
    ran = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert (program, ran.exception, ran.output) == ("launch", None, example.printed)
    Path("hosts.yaml").write_text(ran.output)
    assert load("hosts.yaml").job == "digits"


@pytest.mark.parametrize("arguments", [[], ["hostfile", "--slurm"], ["-H", "a:1", "--slurm"]])
def test_none_or_two_sources_are_refused(arguments: List[str]) -> None:
    ran = CliRunner().invoke(cli, ["import", "--job", "digits", *arguments], standalone_mode=False)
    assert isinstance(ran.exception, UsageError)
    assert "expected one of HOSTFILE, --hosts and --slurm, found" in str(ran.exception)
