"""A grid on this machine: cut off by Ctrl-C while one point waits for the ports of the other, then continued."""

import json
import shlex
import signal
from typing import Any, Dict, List

from tests.support.launch.launcher import Launcher, finish
from tests.support.waiting import eventually

GRID = ("--grid", "env.all.X=1,2", "--at-once", "2")
# Listens on its port, reports $X as its loss, and goes on until a file is there.
PROGRAM = """
import json, os, socket, sys, time
listening = socket.socket()
listening.bind(("", int(sys.argv[1])))
listening.listen()
with open(os.environ["LAUNCH_PROGRESS"], "a") as progress:
    print(json.dumps({"step": 1, "loss": float(os.environ["X"])}), file=progress)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.1)
"""


def recorded(launch: Launcher) -> List[Dict[str, Any]]:
    """The points as the record of the only grid has them; two waiting ones before there is one."""
    found = [json.loads(path.read_text()) for path in launch.workdir.glob("local/grids/*/grid.json")]
    points: List[Dict[str, Any]] = found[0]["points"] if found else [{"state": "", "cause": None}] * 2
    return points


def test_a_grid_waits_for_ports_stops_in_order_and_continues_where_it_stopped(launch: Launcher) -> None:
    (launch.file.parent / "listen.py").write_text(PROGRAM)
    launch.write(command=["{python}", "listen.py", "{port}", str(launch.folder / "go")])
    grid = launch.begin("grid", *GRID)
    eventually("the first point is up", lambda: recorded(launch)[0]["state"] == "running")
    eventually("the second is refused", lambda: "port" in (recorded(launch)[1]["cause"] or ""))
    grid.send_signal(signal.SIGINT)
    ended = finish(grid)
    again = f"launch grid {launch.file} {' '.join(map(shlex.quote, GRID))}"
    assert ended.returncode == 130, ended.stderr
    assert f"0 of 2 points are finished; continue with `{again}`" in ended.stderr
    assert [point["state"] for point in recorded(launch)] == ["stopped", "waiting"] and launch.left() == []

    (launch.folder / "go").touch()
    ended = launch("grid", *GRID, "--json")
    outcome = json.loads(ended.stdout)
    assert ended.returncode == 0, ended.stderr
    assert [(point["state"], point["value"]) for point in outcome["points"]] == [("succeeded", 1), ("succeeded", 2)]
    assert (outcome["best"], outcome["metric"], outcome["goal"]) == ("r.1", "loss", "min")
