"""Past runs on a disk, as old as a test wants them."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from cluster.protocol.settings import Keep
from cluster.protocol.typed_json import to_values
from launch.agent.retention.past_runs import Clocks
from launch.agent.retention.rules import DAY_S
from launch.agent.state import runs
from launch.agent.state.run_folder import RunFolder, name_of


class PastRuns:
    """A working folder with past runs of the host ``h``."""

    def __init__(self, workdir: Path):
        self.workdir, self.now = workdir, time.time()

    @property
    def clocks(self) -> Clocks:
        return Clocks(self.now, self.now)

    def make(self, run: str, days: float, host: str = "h", rule: Any = None, **plan: Any) -> RunFolder:
        """A run that began and was last used so many days ago, without any result."""
        folder = RunFolder(self.workdir, run, host)
        folder.create()
        runs.note_generation(folder, int(self.now - days * DAY_S))
        kept = to_values(rule) if isinstance(rule, Keep) else None
        folder.write("plan.json", {"name": name_of(run), "lead": {"host": host}, "retention": kept, **plan})
        folder.task("worker:0").mkdir()
        folder.log("worker:0", 0).write_text("line\n" * 1000)
        return self.age(folder, days)

    def age(self, folder: RunFolder, days: float) -> RunFolder:
        """Let everything of a run be so old."""
        self.touch(folder.path, days)
        return folder

    def touch(self, path: Path, days: float) -> None:
        then = self.now - days * DAY_S
        for each in sorted(path.rglob("*"), reverse=True):
            os.utime(str(each), (then, then), follow_symlinks=False)
        os.utime(str(path), (then, then))

    def left(self) -> Any:
        """The runs that are still there."""
        return sorted(path.name for path in (self.workdir / "runs").iterdir())


@pytest.fixture
def past(tmp_path: Path) -> PastRuns:
    return PastRuns(tmp_path / "w")
