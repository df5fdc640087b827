"""Which run the verbs mean where clocks and time zones differ: one that lives, else the one that began last."""

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any, Dict

from launch.agent.state.run_folder import RunFolder
from tests.support.launch.launcher import Launcher, finish

AHEAD = "r-20991231-235959"  # as a launcher names it whose clock is ahead
EAST, WEST = "Pacific/Kiritimati", "Pacific/Pago_Pago"  # of the same moment their clocks tell two dates


def ended_run(launch: Launcher) -> RunFolder:
    """What a run that has failed leaves, from before runs were numbered."""
    folder = RunFolder(launch.workdir, AHEAD, "localhost")
    folder.create()
    folder.write("plan.json", {"name": "r", "run": AHEAD, "host": "localhost", "tasks": []})
    folder.write("status.json", {"run": AHEAD, "name": "r", "state": "failed", "cause": "of old", "tasks": []})
    return folder


def status(launch: Launcher) -> Dict[str, Any]:
    """``launch status --json``."""
    told: Dict[str, Any] = json.loads(launch("status", "--json").stdout)
    return told


def test_a_live_run_is_shown_and_ended_though_the_name_of_a_dead_one_is_later(launch: Launcher) -> None:
    launch.stay()
    ended_run(launch)
    assert launch("up", "-d").returncode == 0
    told = status(launch)
    assert (told["state"], told["run"] == AHEAD) == ("running", False)
    down = launch("down")
    assert down.returncode == 0
    assert f"{told['run']}: ended" in down.stdout
    assert launch.left() == []


def test_of_two_runs_that_are_over_the_one_begun_last_is_shown_whatever_the_names_are(launch: Launcher) -> None:
    launch.stay()
    ended_run(launch)
    launch("up", "-d")
    launch("down")
    assert (status(launch)["run"] == AHEAD, status(launch)["state"]) == (False, "stopped")


def test_operators_in_two_time_zones_begin_runs_whose_names_follow_each_other(launch: Launcher) -> None:
    launch.write("test {role} = ps && exec sleep 1000; exit 0")
    for zone in (EAST, WEST):
        ran = finish(launch.begin("up", TZ=zone))
        assert ran.returncode == 0, ran.stdout + ran.stderr
    first, second = sorted(Path(launch.workdir, "runs").iterdir(), key=lambda path: path.stat().st_ctime)
    assert first.name < second.name == status(launch)["run"]


def test_the_status_has_the_times_of_the_run_in_utc_wherever_its_launcher_is(launch: Launcher) -> None:
    launch.stay()
    before = int(time.time())
    ran = finish(launch.begin("up", "-d", TZ=EAST))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lives = status(launch)
    assert lives["ended"] is None
    launch("down")
    over = status(launch)
    started, updated, ended = (moment(over[key]) for key in ("started", "updated", "ended"))
    assert before <= started <= moment(lives["updated"]) <= ended <= updated <= time.time()
    assert over["started"] == lives["started"]


def moment(text: str) -> float:
    """A time in seconds since 1970; refused without UTC's offset."""
    assert text.endswith("+00:00")
    return datetime.fromisoformat(text).timestamp()
