"""The status of a run, from its supervisor's knowledge, and the workers that slow the run down.

All workers of a synchronous step take equally long: a worker that finishes early waits. So the step time does not show
which workers are slow; the time that each worker needs to send its gradient does. A worker is a *straggler* when it
needs more than ``SLOW`` times as long as the median worker. Every worker waits for the gradients to be applied, and for
the network. So only the waiting that exceeds the slowest worker's own waiting is caused by that worker.

A program under ``command:`` reports at most its examples per second. A worker of a program is a straggler when the
median worker computes more than ``SLOW`` times as many.
"""

import math
from statistics import median_high, median_low
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from cluster.protocol.typed_json import part_of
from cluster.task import TRAINERS
from launch.agent.supervision.elastic import Formations
from launch.agent.supervision.formation import full_sizes, sizes
from launch.agent.supervision.run_state import Phase, SupervisedRun
from launch.agent.supervision.task_records import Pace, TaskRecord
from launch.status.run import FormationStatus, RunStatus

SLOW = 1.25
LEAST_MS = 2.0  # a smaller difference is noise of the machine
EVIDENCE_S = 5.0  # of reports: the first steps of a process are slow everywhere


class Judgement(NamedTuple):
    """The stragglers (slow workers) of a run, and the waiting that they cause.

    ``stragglers`` has names, the slowest first. ``waiting_share`` is the mean part of a step, from 0 to 1, for which
    the other workers wait for the slowest worker. ``waiting_share`` is None if fewer than two paces are known.
    """

    stragglers: Tuple[str, ...]
    waiting_share: Optional[float]


def run_status(run: SupervisedRun, formations: Formations, now: float, **more: Any) -> RunStatus:
    """Return the status of a run; ``more`` has fields that the run does not know.

    Fields that the run, its plan or the chief's outcome has under the same name are taken from there.
    """
    plan, state, tasks, incidents, outcome = run.plan, run.state, run.tasks, run.incidents, run.outcome
    formation = _formation(run, formations)
    workers = [task for task in tasks.values() if task.plan.role in TRAINERS]
    chief = next((task for task in workers if task.plan.chief), None)
    drained = formation.drained if formation is not None else ()  # whose last steps do not count
    present = [task for task in workers if not incidents.stalls.is_from_before(task.plan.name)] or workers
    steps = [task.progress.get("step") for task in present if task.plan.name not in drained]
    newest = max((step for step in steps if step is not None), default=incidents.stalls.present)
    reporter = chief if plan.judge == "outcome" else _reporter(workers, chief)
    report = reporter.progress if reporter else {}
    judged, stalls = _judge(tasks), incidents.stalls
    blamed = incidents.blame if state.result == "failed" else None
    return part_of(
        RunStatus,
        run,
        plan,
        outcome,
        state=state.label,
        global_step=outcome["step"] if outcome.get("step") is not None else newest,
        formation=formation,
        steps_per_second=round(reporter.rates(now)[0], 3) if reporter else 0.0,
        examples_per_second=round(sum(task.rates(now)[1] for task in workers), 1),
        loss=report.get("loss"),
        checkpoint_step=outcome.get("checkpoint_step", run.checkpoint_step),
        evaluation=_evaluation(tasks),
        cause=state.cause,
        training_metrics=_defined(report.get("metrics") or {}),
        metrics=_defined(outcome.get("metrics") or {}),
        best=outcome.get("best") or report.get("best") or None,
        warnings=[*(report.get("warnings") or []), *run.warnings],
        incidents=incidents.statuses(),
        cause_incident=None if blamed is None else blamed.incident.number,
        lost_steps=stalls.steps_lost,
        history=run.curve.shown,
        lost_seconds=round(stalls.seconds_lost, 3),
        effective=incidents.effective.status(now) if incidents.has_progress else None,
        waiting_share=None if judged.waiting_share is None else round(judged.waiting_share, 3),
        tasks=[task.status(name in judged.stragglers) for name, task in tasks.items()],
        **more,
    )


def _reporter(workers: Sequence[TaskRecord], chief: Optional[TaskRecord]) -> Optional[TaskRecord]:
    """Return the task whose report stands for a program's run: the chief, or the first worker that reports a step."""
    ranked = sorted(workers, key=lambda task: not task.plan.chief)
    return next((task for task in ranked if task.progress.get("step") is not None), chief)


def _formation(run: SupervisedRun, formations: Formations) -> Optional[FormationStatus]:
    """Return the status of the formation; None for a run that is not elastic."""
    if not formations.is_elastic:
        return None
    workers, servers = sizes(formations.current.indices)
    all_workers, all_servers = full_sizes(run.plan.tasks, formations.wishes.by_name)
    return FormationStatus(
        number=formations.current.number,
        workers=workers,
        of_workers=all_workers,
        ps=servers,
        of_ps=all_servers,
        without=list(formations.out),
        forming=run.state.phase is Phase.REFORMING,
        drained=formations.wishes.named(False),
        added=formations.wishes.named(True),
        changing=formations.is_changing,
        problem=formations.problem,
    )


def _judge(tasks: Mapping[str, TaskRecord]) -> Judgement:
    """Compare the running workers, once enough reports of all of them exist."""
    running = {name: task for name, task in tasks.items() if task.state == "running"}
    paces = {name: task.pace() for name, task in running.items()}
    known = {name: pace for name, pace in paces.items() if pace is not None}
    is_known_well = all(running[name].reported_s >= EVIDENCE_S for name in known)
    if known:
        return judge(known) if is_known_well else Judgement((), None)
    workers = {name: task for name, task in running.items() if task.plan.role in TRAINERS}
    rates = {name: task.reported_rate() for name, task in workers.items() if task.reported_s >= EVIDENCE_S}
    return Judgement(judge_rates({name: rate for name, rate in rates.items() if rate is not None}), None)


def judge_rates(rates: Mapping[str, float]) -> Tuple[str, ...]:
    """Return a program's slow workers, the slowest first; ``rates`` has each worker's examples per second."""
    middle = median_high(rates.values()) if rates else 0.0
    slow = [name for name, rate in rates.items() if rate * SLOW < middle]
    return tuple(sorted(slow, key=lambda name: rates[name])) if len(rates) > 1 else ()


def _defined(metrics: Mapping[str, float]) -> Dict[str, Optional[float]]:
    """Return metrics with None for each value that is not finite: JSON cannot represent such values."""
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}


def _evaluation(tasks: Mapping[str, TaskRecord]) -> Optional[Dict[str, Optional[float]]]:
    """Return the evaluator's last report as {"step", metric: value, …}.

    The result is None before the first report, and without an evaluator.
    """
    report: Mapping[str, Any] = next((task.progress for task in tasks.values() if task.plan.role == "evaluator"), {})
    return {"step": report["step"], **_defined(report["metrics"])} if report.get("metrics") else None


def judge(paces: Mapping[str, Pace]) -> Judgement:
    """Return the stragglers of a run, and the waiting that they cause; ``paces`` has the pace of each worker."""
    if len(paces) < 2:
        return Judgement((), None)
    middle_ms = median_low(pace.own_ms for pace in paces.values())
    limit_ms = max(SLOW * middle_ms, middle_ms + LEAST_MS)
    slow = sorted((name for name in paces if paces[name].own_ms > limit_ms), key=lambda name: -paces[name].own_ms)
    due_ms = min(pace.wait_ms for pace in paces.values())
    shares = [(p.wait_ms - due_ms) / p.step_ms for name, p in paces.items() if name not in slow and p.step_ms > 0]
    return Judgement(tuple(slow), sum(shares) / len(shares) if shares else 0.0)
