"""A process that waits for its turn writes nothing else, begins once, and ends where it gets none."""

import io
from pathlib import Path
from typing import Dict, List

import pytest

from cluster.protocol.standby import READY, STANDBY, Standby, clear, is_ready


def test_a_process_in_its_turn_begins_at_once_and_never_waits(tmp_path: Path) -> None:
    begun: List[str] = []
    standby = Standby(False, tmp_path, lambda: begun.append("begun"))
    standby.wait()
    assert begun == ["begun"] and not standby.waits and not is_ready(tmp_path)


def test_a_process_that_waits_begins_with_the_line_and_not_before(tmp_path: Path) -> None:
    begun: List[str] = []
    standby = Standby(True, tmp_path, lambda: begun.append("begun"), io.StringIO("\n"))
    assert standby.waits and begun == []
    standby.wait()
    standby.wait()
    assert begun == ["begun"] and not standby.waits and is_ready(tmp_path)
    clear(tmp_path)
    clear(tmp_path)
    assert not is_ready(tmp_path)


def test_without_a_turn_the_process_ends(tmp_path: Path) -> None:
    begun: List[str] = []
    with pytest.raises(SystemExit):
        Standby(True, tmp_path, lambda: begun.append("begun"), io.StringIO("")).wait()
    assert begun == []


@pytest.mark.parametrize("waits", [True, False])
def test_the_environment_decides_and_what_the_task_starts_does_not_wait(tmp_path: Path, waits: bool) -> None:
    environ: Dict[str, str] = {"LAUNCH_TASK_DIR": str(tmp_path), **({STANDBY: "1"} if waits else {})}
    assert Standby.from_environment(environ, lambda: None).waits is waits
    assert STANDBY not in environ and not (tmp_path / READY).exists()
