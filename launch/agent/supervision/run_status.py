"""What is shown of a run: ``status --json``, from what its supervisor knows."""

from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional

from cluster.task import TRAINERS
from launch.agent.supervision.record import TaskRecord
from launch.agent.supervision.stragglers import Judgement, judge

if TYPE_CHECKING:
    from launch.agent.supervision.supervise import Supervisor


def whole(run: "Supervisor") -> Dict[str, Any]:
    """``status --json``."""
    judged = _judge(run.tasks)
    tasks = [{**task.summary(), "straggler": name in judged.stragglers} for name, task in run.tasks.items()]
    share = None if judged.waiting_share is None else round(judged.waiting_share, 3)
    return {**summary(run), "waiting_share": share, "tasks": tasks}


def summary(run: "Supervisor") -> Dict[str, Any]:
    """``status --json`` without its tasks, and without what follows from comparing them."""
    workers = [task for task in run.tasks.values() if task.plan.role in TRAINERS]
    chief = next((task for task in workers if task.plan.chief), None)
    told = chief.progress if chief else {}
    steps = [task.progress["step"] for task in workers if task.progress.get("step") is not None]
    final = run.outcome.get("step")
    return {
        "run": run.plan.run, "name": run.plan.name, "state": run.state,
        "global_step": final if final is not None else max(steps, default=run.incidents.standstill.newest),
        "steps": run.plan.steps,
        "formation": run.reforming.told(),
        "steps_per_second": round(chief.rates(run.now)[0], 3) if chief else 0.0,
        "examples_per_second": round(sum(task.rates(run.now)[1] for task in workers), 1),
        "loss": told.get("loss"),
        "checkpoint_step": run.outcome.get("checkpoint_step", told.get("checkpoint_step")),
        "evaluation": _evaluation(run.tasks), "cause": run.cause, "metrics": run.outcome.get("metrics") or {},
        "checkpoint": run.outcome.get("checkpoint"), "incidents": run.incidents.told(),
        "silent": run.silent,
        "cause_incident": run.incidents.number_of_cause(run.result),
        "lost_steps": run.incidents.standstill.steps_lost,
        "lost_seconds": round(run.incidents.standstill.seconds_lost, 3),
    }  # fmt: skip


def _judge(tasks: Mapping[str, TaskRecord]) -> Judgement:
    paces = {name: task.pace() for name, task in tasks.items() if task.state == "running"}
    return judge({name: pace for name, pace in paces.items() if pace is not None})


def _evaluation(tasks: Mapping[str, TaskRecord]) -> Optional[Dict[str, Any]]:
    """What the evaluator told last: {"step", metric: value, …}; None before, and without one."""
    told = [task.progress for task in tasks.values() if task.plan.role == "evaluator"]
    if not told or not told[0].get("metrics"):
        return None
    return {"step": told[0]["step"], **told[0]["metrics"]}
