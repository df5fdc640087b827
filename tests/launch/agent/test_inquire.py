"""What a host knows of a run: with its agent's help, and without it when it is dead."""

from typing import Any, Callable, Dict, List

from launch.agent import down, inquire
from tests.launch.agent.agents import LEAD, Agents
from tests.waiting import eventually

Run = Callable[..., Agents]
FOREVER = "exec sleep 1000"


def gone(status: Dict[str, Any]) -> str:
    """The cause of a run whose lead's agent is gone; the time in it is the one that it names."""
    since = status["cause"][len("the agent on localhost is gone since ") :][: len("2026-11-20 12:00:00")]
    return f"the agent on localhost is gone since {since}, and the run with it; {inquire.ADVICE}"


def recorded(agents: Agents) -> List[Dict[str, Any]]:
    """The tasks as the lead's last record has them."""
    return (agents.folder().read("status.json") or {})["tasks"]  # type: ignore[no-any-return]


def test_where_nothing_ran_there_is_no_status(run: Run) -> None:
    assert inquire.status(run({"worker:0@localhost": FOREVER}).request()) == {"status": None}


def test_a_run_that_is_asked_for_by_its_own_name_is_not_replaced_by_another(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    other = agents.request(run="r-20261120-110000")
    assert inquire.status(other) == {"status": None}
    assert down.down(other)["run"] is None
    assert agents.status()["state"] == "running"


def test_a_run_without_its_agent_has_failed_and_its_tasks_are_lost(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER, "worker:1@localhost": "exit 0"})
    agents.up()
    eventually("a record of its end", lambda: recorded(agents)[1]["state"] == "succeeded")
    agents.kill(LEAD)
    status = agents.ended()
    assert (status["state"], status["cause"]) == ("failed", gone(status))
    assert [task["state"] for task in status["tasks"]] == ["lost", "succeeded"]
