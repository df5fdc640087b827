"""Code goes that nothing has used for a week: no living run, no process in it, no verb."""

import os
import subprocess
from pathlib import Path
from typing import List, Sequence

from launch.agent.retention.past_runs import is_old, unused_code
from tests.launch.agent.retention.conftest import PastRuns

ONE, TWO = "0" * 16, "1" * 16


def make(past: PastRuns, digest: str, days: float) -> Path:
    code = past.workdir / "code" / digest
    (code / "launch").mkdir(parents=True)
    (code / ".manifest").write_text("{}")
    past.touch(code, days)
    return code


def unused(past: PastRuns, used: Sequence[str] = ()) -> List[str]:
    return [each.path.name for each in unused_code(past.workdir, used, past.now)]


def test_code_of_a_week_ago_goes_unless_a_living_run_has_it(past: PastRuns) -> None:
    make(past, ONE, 8)
    make(past, TWO, 6)
    assert unused(past) == [ONE] and unused(past, [ONE]) == []


def test_code_whose_manifest_an_agent_has_renewed_is_used(past: PastRuns) -> None:
    os.utime(str(make(past, ONE, 8) / ".manifest"))
    assert unused(past) == []


def test_code_that_a_process_works_in_is_used(past: PastRuns) -> None:
    code = make(past, ONE, 8)
    with subprocess.Popen(["sleep", "100"], cwd=str(code / "launch")) as process:
        assert unused(past) == []
        process.kill()
    assert unused(past) == [ONE]


def test_nothing_else_in_that_folder_is_code(past: PastRuns, tmp_path: Path) -> None:
    for name in (".half-sent", "mine", "0" * 15):
        make(past, name, 8)
    make(past, ONE, 8).rename(tmp_path / "moved")
    link = past.workdir / "code" / ONE
    link.symlink_to(tmp_path / "moved")
    os.utime(str(link), (1, 1), follow_symlinks=False)
    assert unused(past) == []


def test_code_that_has_gone_is_not_old(past: PastRuns) -> None:
    assert not is_old(past.workdir / "code" / ONE, past.now)
