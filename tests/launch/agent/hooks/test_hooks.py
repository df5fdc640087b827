"""The lead's agent sends the events of its run: each once, in order of its life, and it waits for nobody for long."""

import json
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

from tests.support.agent.agents import LEAD, Agents
from tests.support.agent.http_receiver import HttpReceiver
from tests.support.waiting import eventually

Run = Callable[..., Agents]
FOREVER = "sleep 1000"


def sh(event: str, script: str) -> Dict[str, Any]:
    return {"event": event, "command": ["sh", "-c", script]}


def ids(file: Path) -> List[str]:
    """The ids of the events that a command has written into a file."""
    return [json.loads(line)["id"].split("/", 1)[1] for line in file.read_text().splitlines()] if file.exists() else []


def pending(folder: Path) -> List[int]:
    """The receivers that have not taken an event yet, as the lead has recorded them."""
    (file,) = folder.rglob("hooks.json")
    return [each["receiver"] for each in json.loads(file.read_text())["pending"]]


def test_a_run_sends_its_start_and_its_end_to_commands_and_urls(run: Run, tmp_path: Path) -> None:
    with HttpReceiver() as server:
        url = {"event": "failed", "url": "{URL}", "headers": {}}
        hooks = [sh("started", f"cat >> {tmp_path}/seen"), sh("failed", f"cat >> {tmp_path}/seen"), url]
        script = f"while test ! -e {tmp_path}/go; do sleep 0.05; done; exit 3"
        agents = run({"worker:0@localhost": script}, hooks=hooks, secrets={"URL": server.url})
        agents.up()
        # Commands have no order between them: each has its own events in theirs.
        eventually("the start is sent", lambda: ids(tmp_path / "seen") == ["started"])
        (tmp_path / "go").touch()
        status = agents.ended()
    assert (status["state"], status["hook_problem"]) == ("failed", None)
    assert ids(tmp_path / "seen") == ["started", "failed"]
    (event,) = [got.body for got in server.got]
    assert (event["cause"], event["task"], event["host"]) == (status["cause"], "worker:0", LEAD)
    files = [path for path in (tmp_path / "w").rglob("*") if path.is_file()]
    assert len(files) > 5 and not [path for path in files if server.url in path.read_text()]


def test_another_agent_of_the_lead_goes_on_with_deliveries_and_raises_nothing_again(run: Run, tmp_path: Path) -> None:
    late = f"test -e {tmp_path}/open && cat >> {tmp_path}/late"
    hooks = [sh("started", f"cat >> {tmp_path}/seen"), sh("started", late)]
    agents = run({"worker:0@localhost": FOREVER}, hooks=hooks)
    agents.up()
    eventually("a receiver that has failed", lambda: agents.status()["hook_problem"])
    eventually("the other event, and its record", lambda: ids(tmp_path / "seen") and pending(tmp_path) == [1])
    agents.kill(LEAD)
    eventually("the end of the agent", lambda: not agents.alive(LEAD))
    (tmp_path / "open").touch()
    assert agents.start(again=True)["ready"]
    eventually("the delivery that was under way", lambda: ids(tmp_path / "late") == ["started"])
    eventually("a run without a problem", lambda: agents.status()["hook_problem"] is None)
    agents.tell({"do": "stop", "reason": "enough"})
    assert agents.ended()["state"] == "stopped"
    assert ids(tmp_path / "seen") == ids(tmp_path / "late") == ["started"]


def test_a_receiver_that_never_ends_neither_keeps_a_run_up_nor_lives_on(run: Run, tmp_path: Path) -> None:
    hooks = [sh("started", FOREVER), sh("stopped", FOREVER), sh("stopped", f"cat >> {tmp_path}/seen")]
    agents = run({"worker:0@localhost": FOREVER}, hooks=hooks)
    agents.up()
    began = time.monotonic()
    agents.tell({"do": "kill", "reason": "now"})
    status = agents.ended()  # nothing of the test's folder lives on after it: a fixture looks
    assert time.monotonic() - began < 8.0, "a second Ctrl-C waits a second for receivers, not ten"
    assert status["state"] == "stopped" and ids(tmp_path / "seen") == ["stopped"]
    assert status["hook_problem"] == "on.stopped (sh): it did not end within 1 s of the run's end"


def test_a_program_that_is_not_there_is_told_before_anything_starts(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER}, hooks=[{"event": "failed", "command": ["no-such-program"]}])
    missing = "on.failed: no program no-such-program on this host"
    assert agents.start()["error"] == f"{missing}; install it, or write its path into on.failed"
