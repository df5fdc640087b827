"""A chief that is asked to save and to hold saves the last step of all workers; if nobody ends it, training goes on."""

from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

from cluster.protocol.outcome import read_progress
from cluster.protocol.save_request import HOLD, ask
from cluster.spec import load
from cluster.task import Train
from cluster.training import chief_pauses
from tests.support.nightly import few
from tests.support.training.jobs import counted
from tests.support.training.threads import ThreadedRun
from tests.support.waiting import eventually, let_pass

WORKERS = 2
WAYS: Dict[str, Dict[str, Any]] = {
    "overlapped": {},
    "asynchronous": {"mode": "async"},
    "asynchronous, in windows": {"mode": "async", "local_steps": 3},
    "with backup workers": {"backup_workers": 1},
    "stock": {"sync": "stock"},
}


class Held:
    """A run in which the chief is asked to save and to hold, once every worker trains."""

    def __init__(self, folder: Path, rows: bool, **train: Any):
        self._folder = folder
        hosts = folder / "hosts.yaml"
        hosts.write_text("name: r\njob: x.py\ncluster: {ps: ['a:1'], worker: ['a:2', 'a:3']}\n")
        settings = Train(tower_batch_size=2, steps=200, **train)
        args = {"pause_ms": 2, "rows": rows}
        self.run = ThreadedRun(load(hosts), counted.__name__, settings, args, folder / "saved", folder).start()
        eventually("steps of all", lambda: min(self.steps()) > 10)
        ask(folder / "worker.0", 1, HOLD)
        eventually("the save", lambda: self.chief().save_done == 1)

    def chief(self) -> Any:
        return read_progress(self._folder / "worker.0")

    def steps(self) -> Iterator[int]:
        found = (read_progress(self._folder / f"worker.{index}") for index in range(WORKERS))
        return (-1 if each is None else each.step for each in found)


@pytest.mark.parametrize("way", few(sorted(WAYS), ["overlapped", "asynchronous, in windows"]))
def test_no_worker_takes_a_step_that_the_checkpoint_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(chief_pauses, "HOLD_S", 0.8)
    held = Held(tmp_path, way == "asynchronous", **WAYS[way])
    saved = held.chief().step
    assert held.chief().checkpoint_step == saved
    let_pass(0.4)  # in which others would go on
    assert max(held.steps()) == saved
    found = counted.counts(str(tmp_path / "saved" / f"model-{saved}"))
    assert set(found.values()) == {saved}
    held.run.finish()
