"""The status of a run, from its supervisor's knowledge."""

from typing import TYPE_CHECKING, Dict, Iterable, Mapping, Optional

from cluster.task import TRAINERS
from launch.agent.supervision.record import TaskRecord
from launch.agent.supervision.stragglers import Judgement, judge
from launch.status.run import RunStatus

if TYPE_CHECKING:
    from launch.agent.supervision.supervise import Supervisor


def run_status(run: "Supervisor") -> RunStatus:
    """Return the status, without the lead's additions: its clock, and the copies of checkpoints."""
    workers = [task for task in run.tasks.values() if task.plan.role in TRAINERS]
    chief = next((task for task in workers if task.plan.chief), None)
    told = chief.progress if chief else {}
    judged, standstill = _judge(run.tasks), run.incidents.standstill
    return RunStatus(
        run=run.plan.run,
        name=run.plan.name,
        state=run.state,
        global_step=_global_step(run, workers),
        steps=run.plan.steps,
        formation=run.reforming.status(),
        steps_per_second=round(chief.rates(run.now)[0], 3) if chief else 0.0,
        examples_per_second=round(sum(task.rates(run.now)[1] for task in workers), 1),
        loss=told.get("loss"),
        checkpoint_step=run.outcome.get("checkpoint_step", told.get("checkpoint_step")),
        evaluation=_evaluation(run.tasks),
        cause=run.cause,
        metrics=run.outcome.get("metrics") or {},
        checkpoint=run.outcome.get("checkpoint"),
        incidents=run.incidents.statuses(),
        silent=run.silent,
        cause_incident=run.incidents.number_of_cause(run.result),
        lost_steps=standstill.steps_lost,
        lost_seconds=round(standstill.seconds_lost, 3),
        waiting_share=None if judged.waiting_share is None else round(judged.waiting_share, 3),
        tasks=[task.status(name in judged.stragglers) for name, task in run.tasks.items()],
    )


def _global_step(run: "Supervisor", workers: Iterable[TaskRecord]) -> Optional[int]:
    """Return the final step; before the end, the newest step that a worker has reported."""
    final: Optional[int] = run.outcome.get("step")
    if final is not None:
        return final
    steps = [task.progress["step"] for task in workers if task.progress.get("step") is not None]
    return max(steps) if steps else run.incidents.standstill.newest


def _judge(tasks: Mapping[str, TaskRecord]) -> Judgement:
    paces = {name: task.pace() for name, task in tasks.items() if task.state == "running"}
    return judge({name: pace for name, pace in paces.items() if pace is not None})


def _evaluation(tasks: Mapping[str, TaskRecord]) -> Optional[Dict[str, float]]:
    """Return the evaluator's last report as {"step", metric: value, …}.

    The result is None before the first report, and without an evaluator.
    """
    told = [task.progress for task in tasks.values() if task.plan.role == "evaluator"]
    if not told or not told[0].get("metrics"):
        return None
    return {"step": told[0]["step"], **told[0]["metrics"]}
