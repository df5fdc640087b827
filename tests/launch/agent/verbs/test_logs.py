"""The lines of a host's task logs: all of them, in the order of time, as they come or of a time."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

from cluster.protocol.settings import Restart
from cluster.protocol.typed_json import to_values
from launch.agent.verbs import logs as verb
from launch.agent.wire.verb_requests import LogsRequest
from tests.support import ROOT
from tests.support.agent.agents import RUN, Agents
from tests.support.waiting import PATIENCE_S

Run = Callable[..., Agents]
FOREVER = "exec sleep 1000"


def logs(agents: Agents, tasks: List[str], **options: Any) -> List[Dict[str, Any]]:
    told: List[Dict[str, Any]] = []
    verb.logs(LogsRequest(agents.reference(), tuple(tasks), **options), told.append)
    return told


def test_where_nothing_ran_there_is_no_log(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    assert logs(agents, ["worker:0"]) == [{"error": "no run of this name has been on this host"}]


def test_logs_have_every_line_of_every_attempt_with_its_task(run: Run) -> None:
    script = "echo one $LAUNCH_ATTEMPT; printf 'no newline'; exit 3"
    agents = run(
        {"worker:0@localhost": script, "worker:1@localhost": "echo other; sleep 1000"}, Restart(1, 0.01, together=False)
    )
    agents.start()
    agents.tell({"do": "go"})
    agents.ended()
    assert [(line["attempt"], line["line"]) for line in logs(agents, ["worker:0"])] == [
        (0, "one 0"), (0, "no newline"), (1, "one 1"), (1, "no newline"),
    ]  # fmt: skip
    assert len(logs(agents, ["worker:0", "worker:1"])) == 5


def test_of_a_long_log_only_the_tail_is_told_where_that_is_asked_for(run: Run) -> None:
    agents = run({"worker:0@localhost": "seq 1 1000; exit 3"})
    agents.start()
    agents.tell({"do": "go"})
    agents.ended()
    assert [line["line"] for line in logs(agents, ["worker:0"], tail=2)] == ["999", "1000"]


def test_a_log_that_is_followed_grows_until_the_run_is_over(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": f"echo one; while test ! -e {tmp_path}/go; do sleep 0.05; done; printf two"})
    agents.up()
    told = []

    def tell(values: Dict[str, Any]) -> None:
        told.append(values["line"])
        (tmp_path / "go").touch()  # the task goes on only when its first line was told

    verb.logs(LogsRequest(agents.reference(), ("worker:0",), follow=True), tell)
    assert told == ["one", "two"]


def test_who_follows_a_silent_log_and_goes_leaves_no_process_behind(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    follower = subprocess.Popen(
        [sys.executable, "-m", "launch.agent", "logs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        cwd=str(tmp_path), env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    with follower:
        request = LogsRequest(agents.reference(), ("worker:0",), follow=True)
        follower.stdin.write(json.dumps(to_values(request)).encode() + b"\n")  # type: ignore[union-attr]
        follower.stdin.close()  # type: ignore[union-attr]
        try:
            assert follower.wait(PATIENCE_S) == 0
        finally:
            follower.kill()
    assert agents.status()["state"] == "running"


def test_a_task_that_ran_on_another_host_is_named_after_the_lines_of_the_others(run: Run) -> None:
    agents = run({"worker:0@localhost": "echo one; exit 3"})
    agents.start()
    agents.tell({"do": "go"})
    agents.ended()
    *lines, last = logs(agents, ["worker:0", "worker:1"])
    assert [line["line"] for line in lines] == ["one"]
    assert last == {"error": f"worker:1 of {RUN} ran on another host: the hosts file has changed since"}
