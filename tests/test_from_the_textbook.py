"""The page beside the textbook: its two programs, extracted from it, train the same line through the same points."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import pytest
import tensorflow

from tests.support import ROOT
from tests.support.launch.machine import living_under
from tests.support.waiting import PATIENCE_S

PAGE = (ROOT / "docs" / "from-the-textbook.md").read_text()
FILES = dict(re.findall(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def launch(verb: str, file: str, folder: Path, *options: str) -> str:
    """What ``launch VERB`` prints, after its end with 0."""
    argv = [sys.executable, "-m", "launch", verb, str(folder / file), "--local", *options]
    argv += ["--set", f"workdir={folder}/work"]
    ran = subprocess.run(
        argv, cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=2 * PATIENCE_S
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def log_of(status: Dict[str, Any], role: str, index: int) -> str:
    (task,) = (task for task in status["tasks"] if (task["role"], task["index"]) == (role, index))
    return Path(task["log"]).read_text()


def test_the_page_has_both_programs_whole() -> None:
    assert sorted(FILES) == ["hosts.yaml", "job.py", "textbook.yaml", "train.py"]


if tensorflow.__version__.startswith("1."):  # SyncReplicasOptimizer is of TensorFlow 1.x; its end is not steady in 2.x

    def test_the_textbooks_script_finds_the_line(folder: Path) -> None:
        launch("up", "textbook.yaml", folder)
        status = json.loads(launch("status", "textbook.yaml", folder, "--json"))
        for index in (0, 1):  # a worker reads its last result before the step at which it stops
            assert re.search(r"step (?:29\d|300), slope 2\.00, offset 1\.00", log_of(status, "worker", index)), index
        assert living_under(folder) == []


def test_three_functions_find_the_same_line(folder: Path) -> None:
    shown = launch("up", "hosts.yaml", folder)
    loss = re.search(r"held-out data: loss (\S+)", shown)
    assert "succeeded: step 300" in shown and loss and float(loss.group(1).rstrip(",")) < 1e-4, shown
    assert living_under(folder) == []
