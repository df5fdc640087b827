"""``launch verify``: prepare a spec for the comparison, and report the chief's result."""

from dataclasses import replace
from typing import Dict, List, Mapping

import click

from cluster.protocol.quantity import quantity
from cluster.protocol.verifiable import unverifiable
from cluster.spec.model import Spec
from cluster.task import TRAINERS, Best, Checkpoint, Train
from launch.errors import FAILED, SUCCEEDED, UsageError
from launch.plan.local_spec import towers
from launch.run.draft import RunStart
from launch.run.lifecycle import train
from launch.signals import Interrupts
from launch.status.run import RunStatus
from launch.target import Target
from launch.verbs.options import with_hosts_file
from launch.view import run_end

_STEPS, _MODEL, _OPTIMIZER = "verified_steps", "verified_variables", "verified_optimizer_variables"
_PLAIN, _BY_PARTS, _NOT_FINITE = "verified_plain_steps", "verified_plain_steps_by_parts", "not_compared_steps"
_BY_DESIGN, _NOT_COMPARED = "differs_by_design/", "not_compared/"  # followed by the name of a variable
_TABLE, _RANDOM, _NOT_FULL = "not_compared_table/", "given_random_numbers", "not_compared_steps_of_shards"
_MOST = 5  # variables of one kind with a line each


def prepared(spec: Spec, steps: int) -> Spec:
    """Return the spec of a run that is compared with one process.

    The spec has no GPUs but the same number of towers, and no evaluator, spares, restarts, checkpoints, hooks or
    notice.

    Args:
      steps: the most steps to compare.

    Raises:
      UsageError: some settings cannot be verified; the text names each of them.
    """
    refused = _refused(spec)
    if refused:
        raise UsageError("\n".join(f"{spec.path}: {each}" for each in refused))
    tasks = tuple(replace(task, gpus=()) for task in spec.tasks if task.role != "evaluator" and not task.spare)
    restart = replace(spec.restart, max=0)
    return replace(
        spec, tasks=tasks, train=_train(spec, steps), restart=restart, elastic=None, hooks=(), notice=None, after=()
    )


def _refused(spec: Spec) -> List[str]:
    if spec.command is not None:
        return ["command: expected a job for launch verify, found a program, whose model the launcher does not know"]
    return list(unverifiable(spec.train))


def _train(spec: Spec, steps: int) -> Train:
    most = min(steps, spec.train.last_step)
    plain = replace(spec.train, trace=None, checkpoint=Checkpoint(), best=Best())
    return replace(plain, steps=most, towers=towers(spec), verify=True)


def is_equal(status: RunStatus) -> bool:
    """Return whether the run has succeeded and its chief has compared steps."""
    return status.state == "succeeded" and bool(status.metrics.get(_STEPS))


def ending(status: RunStatus) -> List[str]:
    """Return the last lines of ``launch verify``."""
    if is_equal(status):
        numbers = _whole_numbers(status)
        return [*_beside_plain(numbers), *_given(numbers), f"{status.run} {_equal(status)}"]
    if status.state == "succeeded":
        return [f"{status.run}: expected the chief's report of the comparison, found none; see its log"]
    return [*run_end.what_happened(status), f"{status.run} {status.state}: {status.cause}"]


def _equal(status: RunStatus) -> str:
    metrics = _whole_numbers(status)
    workers = sum(task.role in TRAINERS for task in status.tasks)
    return (
        f"equals one process bit by bit in {quantity(metrics[_STEPS], 'step')}:"
        f" {quantity(metrics[_MODEL], 'variable')} and {metrics[_OPTIMIZER]} of the optimizer,"
        f" {quantity(workers, 'worker')}"
    )


def _whole_numbers(status: RunStatus) -> Dict[str, int]:
    return {name: int(value or 0) for name, value in status.metrics.items()}


def _beside_plain(metrics: Mapping[str, int]) -> List[str]:
    """Return lines about the parts that were compared with plain TensorFlow, and the parts that were not."""
    if not metrics.get(_PLAIN):
        return ["not compared with plain TensorFlow: the log of the chief has the reason"]
    lines = [f"equals plain TensorFlow, but for rounding, in {quantity(metrics[_PLAIN], 'step')}"]
    if metrics.get(_BY_PARTS):
        lines.append("batch statistics differ by design: each tower of both sides uses its own part")
    if metrics.get(_NOT_FINITE):
        lines.append(f"not compared in {quantity(metrics[_NOT_FINITE], 'step')}: numbers that are not finite")
    if metrics.get(_NOT_FULL):
        lines.append(
            f"not compared in {quantity(metrics[_NOT_FULL], 'step')}: batches at the end of shards are not full"
        )
    lines += _named(metrics, _BY_DESIGN, "differs by design: the first tower's part of a batch updates it")
    return lines + _named(metrics, _NOT_COMPARED, "not compared: only one side has it")


def _given(metrics: Mapping[str, int]) -> List[str]:
    """Return lines about the values that both sides take from the run."""
    lines = ["random numbers differ by design: both sides use the numbers of the run"] if metrics.get(_RANDOM) else []
    return lines + _named(metrics, _TABLE, "not compared: both sides use the rows of the run's table")


def _named(metrics: Mapping[str, int], beginning: str, text: str) -> List[str]:
    names = [name[len(beginning) :] for name in metrics if name.startswith(beginning)]
    more = len(names) - _MOST
    lines = [f"{name} {text}" for name in (names if more < 2 else names[:_MOST])]
    return lines if more < 2 else [*lines, f"and {more} more: launch status --json has their names"]


@click.command()
@with_hosts_file
@click.option(
    "--steps", type=click.IntRange(min=1), default=100, show_default=True,
    help="Number of steps to compare, at most train.steps.",
)  # fmt: skip
def verify(target: Target, steps: int) -> int:
    """Train, and compare each step with one process, bit by bit.

    The run, one process and plain TensorFlow train on the same batches. The run must equal the one
    process bit by bit. Except for rounding, it must also equal plain TensorFlow with the author's
    functions and the whole batch. Exit code 0: every variable was equal after every step. Exit code 1: the
    report names the first step and variable that differ, and the probable mistake, if known. Tasks
    compute on CPUs, never restart, and neither read nor write a checkpoint.

    \b
    Example:  launch verify hosts.yaml --steps 20
    """
    spec = prepared(target.spec(), steps)
    with Interrupts() as interrupts:
        ended = train(target, RunStart(spec), interrupts, ending)
    return FAILED if ended.code == SUCCEEDED and not is_equal(ended.status) else ended.code
