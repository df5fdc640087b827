"""Which checkpoint the chief's host exports: it waits for one as long as the lead works at it, and no longer."""

from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from cluster.protocol.checkpoint_files import version_of
from launch.agent.service import chief_command
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.verb_requests import ExportRequest
from tests.support.agent.requested import run_request

STAGE = {"stage": "waits for a checkpoint"}
OLD = {"stage": "exports the newest existing checkpoint, since the chief does not save now"}


@pytest.mark.parametrize(
    ("replies", "is_saved"),
    [
        ([{"done": False}, {"done": False}, {"done": True, "last": True}], True),
        ([{"done": False}, {"done": False, "last": True}], False),
        ([{"done": False, "last": True}], False),
        ([{"done": False}, {"done": True}], True),  # an agent of an older launcher
    ],
)
def test_an_export_goes_on_at_the_leads_last_answer(
    replies: List[Dict[str, Any]], is_saved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers(*_: Any) -> Iterator[Dict[str, Any]]:
        yield from replies
        raise AssertionError("the connection stays open: a look for more waits for 30 s")

    monkeypatch.setattr("launch.agent.service.chief_command.local_socket.replies", answers)
    said: List[Dict[str, Any]] = []
    chief_command._save(RunFolder(tmp_path, "r-1", "h"), said.append)
    assert said == [STAGE] * (len(replies) + 1) + [OLD] * (not is_saved)


def test_the_base_of_a_delta_stays_although_the_chief_removes_it(tmp_path: Path) -> None:
    kept, own = tmp_path / "kept", tmp_path / "own"
    kept.mkdir()
    for step in (7, 8):
        (kept / f"model-{step}.index").write_text(str(step))
        (kept / f"model-{step}.data-00000-of-00001").write_text("x")
    request = ExportRequest(run_request(), path=str(kept / "model-8"), since=version_of(str(kept / "model-7")))
    base = chief_command._since(request, RunFolder(tmp_path, "r-1", "h"), own)
    for each in kept.glob("model-7*"):
        each.unlink()
    assert base == str(own / "since" / "model-7") and Path(f"{base}.index").read_text() == "7"
    with pytest.raises(chief_command.NotExported, match="whole model with --since 0"):
        chief_command._since(request, RunFolder(tmp_path, "r-1", "h"), own)
