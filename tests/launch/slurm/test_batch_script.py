"""The batch script of docs/slurm.md, with stand-ins for the launcher and for Slurm's commands."""

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

import pytest

from cluster.spec import load
from tests.support import ROOT
from tests.support.waiting import PATIENCE_S, eventually

SCRIPT = re.findall(r"^```bash\n(#!/bin/bash\n.*?)^```", (ROOT / "docs" / "slurm.md").read_text(), re.M | re.S)[0]
# The launcher says with what it was started, trains until it is told to end or is done, and ends with a code.
LAUNCH = """#!/bin/bash
if [ "$1" = import ]; then echo 'job: digits'; echo 'cluster: {ps: [n1], worker: [n1, n2]}'; exit; fi
trap 'kill $! 2>/dev/null; exit ${TOLD_CODE:-143}' TERM
echo "$@" >>"$LOG"
test -n "$CODE" && exit "$CODE"
sleep 1000 & wait
"""
PROGRAMS = {"launch": LAUNCH, "scontrol": '#!/bin/sh\necho scontrol "$@" >>"$LOG"\n', "module": "#!/bin/sh\n"}


class Script(NamedTuple):
    """The script in a folder of the test's own."""

    folder: Path

    def begin(self, **env: str) -> "subprocess.Popen[bytes]":
        whole: Dict[str, str] = {
            "PATH": f"{self.folder}:{os.defpath}", "SCRATCH": str(self.folder), "LOG": str(self.folder / "log"),
            "SLURM_JOB_ID": "7", "CODE": "", **env,
        }  # fmt: skip
        return subprocess.Popen(["bash", "-c", SCRIPT], env=whole, stdin=subprocess.DEVNULL)

    def log(self) -> List[str]:
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    def ends(self, notice: bool, **env: str) -> int:
        """The script's exit code; with a notice once the launcher trains."""
        with self.begin(**env) as script:
            if notice:
                eventually("the launcher", self.log)
                script.send_signal(signal.SIGTERM)
            return script.wait(PATIENCE_S)


@pytest.fixture
def script(tmp_path: Path) -> Script:
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return Script(tmp_path)


def test_the_hosts_file_that_the_script_makes_is_valid(script: Script) -> None:
    assert script.ends(notice=False, CODE="0") == 0
    spec = load(script.folder / "digits" / "hosts.yaml")
    assert (spec.name, spec.transport) == ("digits", "slurm")
    assert spec.train.checkpoint.dir == f"{script.folder}/digits/checkpoint"


@pytest.mark.parametrize("code", ["0", "1", "143"])
def test_a_run_that_ends_by_itself_ends_the_job_with_its_code(script: Script, code: str) -> None:
    assert script.ends(notice=False, CODE=code) == int(code)
    assert script.log() == [f"up {script.folder}/digits/hosts.yaml"]


@pytest.mark.parametrize(("told", "code", "requeued"), [(None, 0, True), ("0", 0, False), ("1", 1, False)])
def test_a_run_that_is_stopped_by_the_notice_goes_on_in_another_allocation(
    script: Script, told: Optional[str], code: int, requeued: bool
) -> None:
    assert script.ends(notice=True, **({} if told is None else {"TOLD_CODE": told})) == code
    assert script.log()[1:] == (["scontrol requeue 7"] if requeued else [])


def test_a_start_with_a_checkpoint_resumes(script: Script) -> None:
    checkpoint = script.folder / "digits" / "checkpoint" / "checkpoint"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_text("")
    assert script.ends(notice=False, CODE="0") == 0
    assert script.log() == [f"up {script.folder}/digits/hosts.yaml --resume"]
