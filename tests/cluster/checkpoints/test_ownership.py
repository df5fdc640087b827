"""Of two chiefs that share a folder the one that was replaced stops, whatever the clocks of their hosts say."""

import json
from pathlib import Path
from typing import Optional

import pytest

from cluster.checkpoints.owned_folder import Owner, Ownership
from cluster.errors import CheckpointError
from cluster.protocol.checkpoint_files import OWNER


def chief(folder: Path, run: str = "r-1", attempt: int = 0, host: str = "a") -> Ownership:
    return Ownership(folder, Owner(run, attempt, host, 42, f"{run} {attempt} {host}"))


def test_a_chief_that_started_again_takes_the_folder_from_the_one_before_which_then_stops(tmp_path: Path) -> None:
    old, new = chief(tmp_path, attempt=0), chief(tmp_path, attempt=1, host="b")
    old.take()
    new.take()
    new.check()
    with pytest.raises(CheckpointError) as raised:
        old.check()
    assert str(raised.value) == (
        f"checkpoint folder {tmp_path}: expected no other writer than r-1 (attempt 0, pid 42 on a), found that"
        " r-1 (attempt 1, pid 42 on b) has taken the folder since; end one of the two runs, or give each a"
        " train.checkpoint.dir of its own"
    )


def test_an_earlier_attempt_that_comes_late_does_not_take_it_back(tmp_path: Path) -> None:
    chief(tmp_path, attempt=1).take()
    with pytest.raises(CheckpointError, match=r"found that r-1 \(attempt 1"):
        chief(tmp_path, attempt=0).take()


def test_a_run_that_goes_on_in_the_folder_of_another_takes_it_and_the_other_cannot_take_it_back(tmp_path: Path) -> None:
    chief(tmp_path, "r-1", 2).take()
    resumed = chief(tmp_path, "r-2", 0)
    resumed.take()
    with pytest.raises(CheckpointError, match=r"found that r-2 \(attempt 0"):
        chief(tmp_path, "r-1", 3).take()
    resumed.check()


def test_a_chief_that_was_suspended_while_another_run_took_the_folder_and_restarted_does_not_take_it_back(
    tmp_path: Path,
) -> None:
    suspended = chief(tmp_path, "r-1", 0)
    suspended.take()
    chief(tmp_path, "r-2", 0).take()
    restarted = chief(tmp_path, "r-2", 1)
    restarted.take()
    with pytest.raises(CheckpointError, match=r"found that r-2 \(attempt 1"):
        suspended.check()
    restarted.check()


@pytest.mark.parametrize("content", [None, "", "{}", '{"run": "r-9"', "[1]"])
def test_a_note_that_is_gone_or_broken_is_written_anew(tmp_path: Path, content: Optional[str]) -> None:
    own = chief(tmp_path)
    own.take()
    (tmp_path / OWNER).unlink()
    if content is not None:
        (tmp_path / OWNER).write_text(content)
    own.check()
    assert json.loads((tmp_path / OWNER).read_text())["run"] == "r-1"


def test_a_chief_started_by_hand_is_a_run_of_its_own() -> None:
    owner = Owner.of_this_process({})
    assert owner.attempt == 0 and owner.run.startswith("by hand, pid")
    owner = Owner.of_this_process({"LAUNCH_RUN": "r-1", "LAUNCH_ATTEMPT": "3"})
    assert (owner.run, owner.attempt) == ("r-1", 3) and owner.life != Owner.of_this_process({}).life
