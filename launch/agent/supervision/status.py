"""The status of a run, from its supervisor's knowledge."""

from typing import Any, Dict, Iterable, List, Mapping, Optional

from cluster.task import TRAINERS
from launch.agent.supervision.incidents import Incidents
from launch.agent.supervision.record import TaskRecord
from launch.agent.supervision.run_state import RunState
from launch.agent.supervision.stragglers import Judgement, judge
from launch.agent.wire.run_plan import RunPlan
from launch.status.run import FormationStatus, RunStatus


def run_status(
    plan: RunPlan,
    state: RunState,
    tasks: Mapping[str, TaskRecord],
    incidents: Incidents,
    formation: Optional[FormationStatus],
    outcome: Mapping[str, Any],
    silent: List[str],
    now: float,
) -> RunStatus:
    """Return the status, without the lead's additions: its clock, and the copies of checkpoints.

    Args:
      outcome: the chief's; empty before its end.
      silent: the hosts from which the lead receives nothing now.
    """
    workers = [task for task in tasks.values() if task.plan.role in TRAINERS]
    chief = next((task for task in workers if task.plan.chief), None)
    report = chief.progress if chief else {}
    judged, stalls = _judge(tasks), incidents.stalls
    return RunStatus(
        run=plan.run,
        name=plan.name,
        state=state.published,
        global_step=outcome["step"] if outcome.get("step") is not None else _newest_step(workers, stalls.newest),
        steps=plan.steps,
        formation=formation,
        steps_per_second=round(chief.rates(now)[0], 3) if chief else 0.0,
        examples_per_second=round(sum(task.rates(now)[1] for task in workers), 1),
        loss=report.get("loss"),
        checkpoint_step=outcome.get("checkpoint_step", report.get("checkpoint_step")),
        evaluation=_evaluation(tasks),
        cause=state.cause,
        metrics=outcome.get("metrics") or {},
        checkpoint=outcome.get("checkpoint"),
        incidents=incidents.statuses(),
        silent=silent,
        cause_incident=incidents.number_of_cause(state.result),
        lost_steps=stalls.steps_lost,
        lost_seconds=round(stalls.seconds_lost, 3),
        waiting_share=None if judged.waiting_share is None else round(judged.waiting_share, 3),
        tasks=[task.status(name in judged.stragglers) for name, task in tasks.items()],
    )


def _newest_step(workers: Iterable[TaskRecord], before: Optional[int]) -> Optional[int]:
    """Return the newest step that a worker has reported, else the newest of processes before."""
    steps = [task.progress["step"] for task in workers if task.progress.get("step") is not None]
    return max(steps) if steps else before


def _judge(tasks: Mapping[str, TaskRecord]) -> Judgement:
    paces = {name: task.pace() for name, task in tasks.items() if task.state == "running"}
    return judge({name: pace for name, pace in paces.items() if pace is not None})


def _evaluation(tasks: Mapping[str, TaskRecord]) -> Optional[Dict[str, float]]:
    """Return the evaluator's last report as {"step", metric: value, …}.

    The result is None before the first report, and without an evaluator.
    """
    report: Mapping[str, Any] = next((task.progress for task in tasks.values() if task.plan.role == "evaluator"), {})
    return {"step": report["step"], **report["metrics"]} if report.get("metrics") else None
