"""The page beside the textbook: its programs are extracted from it, and the three functions train."""

import re
from pathlib import Path

import pytest

from cluster.spec import load
from tests.support import ROOT
from tests.support.launch.launcher import shown_here
from tests.support.launch.machine import living_under

PAGE = (ROOT / "docs" / "from-the-textbook.md").read_text()
FILES = dict(re.findall(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def launch(verb: str, file: str, folder: Path, *options: str) -> str:
    """What ``launch VERB`` prints, after its end with 0."""
    arguments = [str(folder / file), "--local", *options, "--set", f"workdir={folder}/work"]
    ran = shown_here(verb, *arguments)
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def test_the_page_has_both_programs_whole() -> None:
    assert sorted(FILES) == ["hosts.yaml", "job.py", "textbook.yaml", "train.py"]


def test_the_textbooks_script_is_python_and_its_hosts_file_right(folder: Path) -> None:
    """It is not run: one run of six hung at its end."""
    compile(FILES["train.py"], "train.py", "exec")
    assert len(load(folder / "textbook.yaml").tasks) == 3


def test_three_functions_find_the_same_line(folder: Path) -> None:
    shown = launch("up", "hosts.yaml", folder)
    loss = re.search(r"held-out data: loss (\S+)", shown)
    assert "succeeded: step 300" in shown and loss and float(loss.group(1).rstrip(",")) < 1e-4, shown
    assert living_under(folder) == []
