"""One run: start it, follow it, take it down, and print its end; start a successor where its chief's host is lost.

Only an attached launcher starts a successor, and only if the run is ``elastic`` and has copies of its checkpoints
(``train.checkpoint.replicas``). The successor is a new run of the same name. The successor's chief is the first worker
that is left, and training continues from the newest copy.
"""

import time
from dataclasses import replace
from datetime import datetime, timezone
from typing import Callable, Collection, List, NamedTuple, Optional, Sequence

from cluster.protocol.quantity import quantity
from cluster.spec.model import Spec, TaskSpec
from cluster.task import TRAINERS
from launch.errors import SUCCEEDED, CannotStart, ProblemKind
from launch.fleet import Fleet
from launch.hostfile.selection import renumbered
from launch.logs.task_logs import print_log_of_culprit
from launch.plan.agent_requests import LEASE_S
from launch.plan.plan import Plan
from launch.plan.split_folders import split_folders
from launch.run.attached import Attached
from launch.run.draft import Draft, RunStart, draft, fragile, remarks_on_size, with_generation, with_returns
from launch.run.follower import SILENT_S
from launch.run.graph_check import is_useful
from launch.run.outliving import prove_outliving
from launch.run.resume import bring_newest
from launch.run.start import advising, start_agents
from launch.signals import Interrupts
from launch.status.run import RunStatus
from launch.target import Target, remember
from launch.teardown import STOP_S, failures, in_lines, take_down
from launch.view import run_end
from launch.view.console import fold, say
from launch.view.plain_view import View

MARGIN_S = 2.0  # after the lease of a lost lead
Ending = Callable[[RunStatus], List[str]]  # returns the last lines of a run


class Display(NamedTuple):
    """The display of a run: the view of its status, and a function that prints the lines after the view."""

    view: View
    say: Callable[..., None]


class Ended(NamedTuple):
    """The end of a run, or the state in which the launcher left the run.

    Attributes:
      code: the launcher's exit code.
      status: the run's last status.
      lead_lost_at: the time at which a lost lead last sent a line, by ``time.monotonic()``; None if no lead was
        lost, or the lead was lost during a pause.
      out_of_reach: the hosts that could not report whether anything is left there.
    """

    code: int
    status: RunStatus
    lead_lost_at: Optional[float] = None
    out_of_reach: Sequence[str] = ()


def train_with_failover(
    target: Target, start: RunStart, interrupts: Interrupts, ending: Ending, display: Optional[Display] = None
) -> Ended:
    """Train; each time the chief's host is lost, continue with the hosts that are left.

    Args:
      display: where the run is shown; None for stdout.

    Raises:
      LaunchError: a run cannot start.
      Interrupted: a signal came while the lost lead may still have had its lease.
    """
    before: Optional[Ended] = None
    while True:
        try:
            ended = train(target, start, interrupts, ending, display)
        except CannotStart as refusal:
            if before is None or all(problem.kind != ProblemKind.ENDED for problem in refusal.problems):
                raise
            say(*map(str, refusal.problems))
            return before
        before, following = ended, _successor(start, ended, interrupts)
        if following is None:
            return ended
        start = following


def train(
    target: Target, start: RunStart, interrupts: Interrupts, ending: Ending, display: Optional[Display] = None
) -> Ended:
    """Start a run, follow it to its end, take it down, and print its end; leave a detached run once it is up.

    Raises:
      LaunchError: the run cannot start.
    """
    from launch.view.live_view import for_terminal  # launch.cli has loaded it, but not for the Tab key

    planned = draft(target, start, datetime.now(timezone.utc))
    with Fleet(start.spec, planned.plan.python, planned.code, interrupts) as fleet:
        shown = display or Display(for_terminal(), say)
        with shown.view as view:
            run = _start(fleet, planned, target, start, view)
            attached = Attached(fleet, run.plan, run.requests, view, start.detach)
            status = attached.go()
        if status.state == "running":
            shown.say(*prove_outliving(fleet, run.plan.run, run.plan.hosts))
            shown.say(*_detached(fleet, run, target))
            return Ended(SUCCEEDED, status)
        out_of_reach = _take_down(fleet, run.plan, status, ending, shown.say)
    return Ended(run_end.exit_code(status, interrupts.received), status, attached.lead_lost_at, out_of_reach)


def _start(fleet: Fleet, planned: Draft, target: Target, start: RunStart, view: View) -> Draft:
    """Connect to every host, name the run, bring the checkpoint to resume from, and start the agents.

    Returns:
      the draft whose requests the agents received.
    """
    where = ", which are this machine (--local)" if start.spec.local else ""
    view.note(f"{planned.plan.run}: {quantity(len(planned.plan.tasks), 'task')} on {fold(planned.plan.hosts)}{where}")
    for line in remarks_on_size(planned.code, target.job(start.spec)):
        view.note(line)
    for found in split_folders(start.spec):
        view.note(f"{fold(found.hosts)}: {found.what}; {found.mend}")
    with advising(target.as_started, planned.plan.hosts):
        fleet.connect()
        run = _named(fleet, planned, view, start.detach)
        if start.resume and start.spec.command is None:
            asked = bring_newest(fleet, run.plan, run.requests, view.note, start.needed, start.source)
            run = replace(run, requests=asked)
        # A successor does not wait for its graph, because its predecessor has trained.
        for line in start_agents(fleet, run.requests, is_useful(start.spec) and start.follows is None):
            view.note(line)
        remember(start.spec, run.plan.run)
    return run


def _named(fleet: Fleet, planned: Draft, view: View, detach: bool) -> Draft:
    """Set the run's generation, and a name that no run of any host has; with ``detach``, prepare for reboots."""
    numbered = with_generation(fleet, planned.requests)
    while not numbered.is_free:
        planned = planned.a_second_later()
        view.note(f"renamed to {planned.plan.run}, because another run started in the same second")
        numbered = with_generation(fleet, planned.requests)
    if not detach:
        return replace(planned, requests=numbered.requests)
    returning = with_returns(planned.plan, numbered.requests, numbered.boot_obstacles)
    return replace(planned, requests=returning, fragile=fragile(planned.plan, numbered.boot_obstacles))


def _detached(fleet: Fleet, run: Draft, target: Target) -> List[str]:
    """Return how to follow and end a detached run, and the hosts whose reboot would end the run."""

    def named(hosts: Sequence[str]) -> str:
        return "this machine" if all(map(fleet.spec.is_here, hosts)) else fold(hosts)

    ends = [] if fleet.slurm_job else [(named(hosts), why) for hosts, why in run.fragile]
    resumes = fleet.spec.command is None or fleet.spec.keeps_state
    return run_end.detached(run.plan.run, str(target), target.as_started, ends, resumes, fleet.slurm_job)


def _take_down(fleet: Fleet, plan: Plan, status: RunStatus, ending: Ending, say: Callable[..., None]) -> List[str]:
    """End what is left of the run, print the run's end, and return the hosts that are out of reach."""
    left = take_down(
        fleet,
        {host: fleet.reference(host, run=plan.run) for host in plan.hosts},
        reason=status.cause or "the run is over",
        interruptible=False,
        state=status.state,  # as the view has shown it
    )
    print_log_of_culprit(fleet, status, say)
    say(*(failures(left) if left.clean else in_lines(left)), *ending(status))
    return [problem.host for problem in left.problems]


def _successor(start: RunStart, ended: Ended, interrupts: Interrupts) -> Optional[RunStart]:
    """Wait until an ended run's successor may begin, and return its start; else None. Raises Interrupted."""
    if ended.lead_lost_at is None or interrupts.received:
        return None
    spec = start.spec
    follows = without(spec, {spec.chief.host, *ended.out_of_reach})
    if follows is None:
        return None
    gone, chief = [host for host in spec.hosts if host not in follows.hosts], follows.chief.host
    say(f"continuing without {fold(gone)}, from the newest copy of the checkpoints, with the chief on {chief}")
    await_lease(spec, ended.lead_lost_at, interrupts)
    return RunStart(follows, resume=True, needed=False, detach=start.detach, follows=ended.status.run)


def without(spec: Spec, lost: Collection[str]) -> Optional[Spec]:
    """Return the successor's spec without the lost hosts; None where no successor is possible."""
    if spec.elastic is None or spec.train.checkpoint.replicas == 0:
        return None
    left = _with_spares([task for task in spec.tasks if task.host not in lost], len(spec.tasks_of("ps")))
    workers = sum(task.role in TRAINERS for task in left)
    serves = any(task.role == "ps" and not task.spare for task in left)
    if not serves or workers < max(1, spec.elastic.min_workers):
        return None
    return replace(spec, tasks=renumbered(left))


def _with_spares(left: List[TaskSpec], servers: int) -> List[TaskSpec]:
    """Replace lost ps by spares, until the run has as many ps as before.

    Where too few spares are left, the result has fewer ps.
    """
    wanting = servers - sum(task.role == "ps" and not task.spare for task in left)
    tasks = []
    for task in left:
        moves = task.spare and wanting > 0
        wanting -= moves
        tasks.append(replace(task, spare=False) if moves else task)
    return tasks


def await_lease(spec: Spec, lost_at: float, interrupts: Interrupts) -> None:
    """Wait until the lost lead's lease has ended, even if the last beat reached that lead late.

    Where both runs save into one folder, the wait also gives the lead the time to end its tasks.

    Args:
      lost_at: the time at which the lead last sent a line, by ``time.monotonic()``.

    Raises:
      Interrupted: a signal came.
    """
    shared = spec.train.checkpoint.dir is not None
    until = lost_at + SILENT_S + LEASE_S + MARGIN_S + (STOP_S if shared else 0.0)
    interrupts.wait(max(0.0, until - time.monotonic()))
