"""What must hold once a history is over, by the status that its lead has published last."""

from typing import Any, Dict, List

from launch.agent.service.keeping import LONGEST_PAUSE_S
from launch.agent.supervision.agent_lives import MOST
from tests.simulation import alone
from tests.simulation.promises import LOSES_FILES, Broken

OF_THE_WORLD = {"cut", "cut out", "cut in", "slow", "reset", "clock"}  # faults of network and clocks alone
OF_HOSTS = {"host", "agent", "lost-connection"}  # kinds of incidents that such faults may have
SILENCE = "no message"  # in the cause of a task that was killed for it
SURVIVED = {"reset", "clock", "restart", "save", "drain", "back", "rival", "tidy"}
OF_KEEPERS = {"keeper", "keeper stopped", "memory", "refused", "taken"}  # no matter, unless an agent ends
ENDS = {"agent", "exit"}  # of agents
AGENTS, LEFT_S = 3, 20.0  # ends that a detached run survives, once its launcher has left it
UNSURE = 3  # steps that pass between two reports of progress


def look(world: Any) -> None:
    """Raise Broken where the last status does not account for what has happened."""
    status: Dict[str, Any] = world.lead.folder.read_whole("status.json") or {}
    _success_is_the_last_step(world, status)
    _what_can_be_survived_is(world, status)
    _an_orderly_stop_saves(world, status)
    _too_many_ends_are_the_runs(world, status)
    _steps_back_are_counted(world, status)
    _blame_is_with_the_world(world, status)
    alone.look(world, status)
    world.operators.outcome(status)


def _success_is_the_last_step(world: Any, status: Dict[str, Any]) -> None:
    """I11: a run has succeeded only with its last step, which it shows; one without faults and operators does."""
    is_done, state = world.training.step >= world.plan.steps, status.get("state")
    if state == "succeeded" and not is_done:
        raise Broken(f"I11: the run has succeeded at step {int(world.training.step)} of {world.plan.steps}")
    shown = (status.get("global_step"), status.get("checkpoint_step"))
    if state == "succeeded" and shown != (int(world.training.step), world.training.saved):
        raise Broken(f"I11: step {int(world.training.step)}, saved {world.training.saved}, is shown as {shown}")
    if not world.faults and state != "succeeded":
        raise Broken(f"I11: nothing was in the way, and the run is {state}: {status.get('cause')}")
    if state == "failed" and status["cause_incident"] is None and not status["cause"]:
        raise Broken("I11: the run has failed, and nothing names the cause")


def _what_can_be_survived_is(world: Any, status: Dict[str, Any]) -> None:
    """I12: a run goes on to its end that meets nothing but resets, few ends of agents, and what operators may do."""
    kinds, ends = world.kinds, [fault.at for fault in world.faults if fault.kind in ENDS]
    kept = world.shape.detached and len(ends) <= AGENTS and min(ends, default=LEFT_S) >= LEFT_S
    if kinds <= SURVIVED | (OF_KEEPERS if not ends else ENDS if kept else set()) and status.get("state") != "succeeded":
        raise Broken(f"I12: a run that could go on is {status.get('state')}: {status.get('cause')}")


def _too_many_ends_are_the_runs(world: Any, status: Dict[str, Any]) -> None:
    """I7: a run fails, and says so, whose agents end again and again on one host."""
    ends = [fault.at for fault in world.faults if fault.kind == "agent"]
    is_one_host = (
        len({(fault.kind, fault.what) for fault in world.faults}) == 1 and world.faults[0].what != world.lead_host
    )
    is_apart = all(later - earlier > LONGEST_PAUSE_S + 5.0 for earlier, later in zip(ends, ends[1:]))
    if is_one_host and is_apart and len(ends) > MOST and world.shape.detached and status.get("state") != "failed":
        raise Broken(f"I7: an agent has ended {len(ends)} times, and the run is {status.get('state')}")


def _an_orderly_stop_saves(world: Any, status: Dict[str, Any]) -> None:
    """I11: a stop loses no step, where nothing else has happened, and the chief could report that it trains."""
    step, is_alone = int(world.training.step), world.kinds == {"stop"} and status.get("state") == "stopped"
    if is_alone and world.training.saved < step > UNSURE:
        raise Broken(f"I11: the run has stopped at step {step}, and saved {world.training.saved}")


def _steps_back_are_counted(world: Any, status: Dict[str, Any]) -> None:
    """I9: what the lead knew of, and training took once more, is lost by the status; an incident names it.

    The lead's agent may end before its status has a return, and the next lead begin with a checkpoint of after it.
    """
    if status.get("state") != "succeeded" or world.kinds & LOSES_FILES:
        return
    known = world.training.known_lost - world.promises.unwritten.steps - world.operators.forgotten_steps
    if known > status["lost_steps"] + UNSURE * world.training.falls:
        raise Broken(f"I9: training went back by {known} known steps, and {status['lost_steps']} are counted as lost")
    counted = [each["lost_steps"] or 0 for each in status["incidents"]]
    is_ordered = any(fault.kind == "restart" and fault.what.startswith("ps") for fault in world.faults)
    if status["lost_steps"] and not any(counted) and not is_ordered:
        raise Broken(f"I9: {status['lost_steps']} steps are lost, and no incident names them")


def _blame_is_with_the_world(world: Any, status: Dict[str, Any]) -> None:
    """I10: where only network or clocks misbehave, no incident blames a task."""
    if not world.kinds <= OF_THE_WORLD:
        return
    blamed: List[str] = [
        f"{each['role']}:{each['index']} {each['kind']}: {each['cause']}"
        for each in status.get("incidents", [])
        if each["role"] is not None and each["kind"] not in OF_HOSTS and SILENCE not in (each["cause"] or "")
    ]
    if blamed:
        raise Broken(f"I10: only network and clocks misbehave, and incidents blame {'; '.join(blamed)}")
