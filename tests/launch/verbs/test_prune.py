"""Past runs go when a run of their name starts, and when ``launch prune --yes`` is called; it shows them before."""

import json

from cluster.protocol.settings import Keep
from tests.launch.agent.retention.conftest import PastRuns
from tests.support.launch.launcher import Launcher
from tests.support.waiting import eventually

OLD, YOUNG, OTHER = "r-20260101-120000", "r-20260102-120000", "other-20260101-120000"


def test_prune_shows_what_goes_and_with_yes_removes_it(launch: Launcher) -> None:
    launch.write(keep={"days": 30})
    past = PastRuns(launch.workdir)
    for run, days in ((OLD, 40), (YOUNG, 20)):
        past.make(run, days, host="localhost")
    shown = launch("prune")
    assert (shown.returncode, past.left()) == (0, [OLD, YOUNG])
    assert f"localhost: would remove {OLD}: " in shown.stdout and "not used for 30 days\n" in shown.stdout
    assert f"remove them with `launch prune {launch.file} --yes`" in shown.stdout
    (host,) = json.loads(launch("prune", "--json", "--yes").stdout)["hosts"]
    assert [each["name"] for each in host["going"]] == [OLD] and past.left() == [YOUNG]
    assert launch("prune", "--yes").stdout.startswith("localhost: 0 bytes removed; there were 1 run, ")


def test_a_run_that_starts_removes_past_runs_each_by_the_rule_of_its_name(launch: Launcher) -> None:
    launch.stay(keep={"days": 30})
    past = PastRuns(launch.workdir)
    for run, days in ((OLD, 40), (YOUNG, 20)):
        past.make(run, days, host="localhost")
    for run in (OTHER, "other-20260102-120000"):
        past.make(run, 200, host="localhost", rule=Keep(days=300))
    assert launch("up", "-d").returncode == 0
    eventually("the removal", lambda: OLD not in past.left())
    launch.end()
    assert set(past.left()) >= {YOUNG, OTHER, "other-20260102-120000"} and len(past.left()) == 4
    (newest,) = past.workdir.glob("runs/r-*/hosts/*/agent.log")
    assert f"removed the run {OLD}, " in newest.read_text()
