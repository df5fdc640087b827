"""Ask a job's own runtime for the placement of its variables and the traffic of its steps.

Building the job's graph needs TensorFlow, so a process of another Python builds it (``jobs.describe``). The launcher
only reads the output of that process.
"""

import json
import os
import shlex
import subprocess
from dataclasses import replace
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from cluster.task import TRAINERS, tf_config
from launch.agent.text import Redaction
from launch.errors import LaunchError, UsageError
from launch.hosts.bundle import PROJECT, JobCode
from launch.plan import network_model
from launch.plan.local_spec import towers
from launch.plan.network_model import NetworkEnd
from launch.plan.outlook import Outlook, PlannedContainer, PlannedHook, PsContent, Variables
from launch.plan.plan import Plan, oversized
from launch.plan.split_folders import split_folders

DESCRIBE_S = 300.0
_NO_TENSORFLOW = "ModuleNotFoundError: No module named 'tensorflow"


class NoTensorFlow(LaunchError):
    """This machine's Python cannot build the graph, but the hosts' Python may. So the hosts file may be right."""


class TrafficEnds(NamedTuple):
    """The tasks between which a step moves bytes."""

    workers: List[NetworkEnd]
    servers: List[NetworkEnd]

    @classmethod
    def of(cls, plan: Plan) -> "TrafficEnds":
        """Return the workers and the ps of a plan, by index, without spares."""
        workers = [NetworkEnd(task.name, task.host) for task in plan.tasks if task.role in TRAINERS]
        return cls(
            workers, [NetworkEnd(task.name, task.host) for task in plan.tasks if task.role == "ps" and not task.spare]
        )


def outlook(plan: Plan, job: JobCode, python: str, nic_gbps: float) -> Tuple[Outlook, Optional[UsageError]]:
    """Return the object of ``plan --json`` without its tasks, and the error in the job or None.

    After an error in the job, ``placement``, ``variables`` and ``network`` are null.
    """
    bare = Outlook(
        plan.spec.name,
        plan.lead,
        plan.control,
        remarks=list(remarks(plan)),
        hooks=hooks(plan),
        container=container(plan),
    )
    if plan.spec.command is None:
        try:
            return with_placement(bare, plan, job, python, nic_gbps), None
        except NoTensorFlow as error:
            return replace(bare, remarks=[*bare.remarks, str(error)]), None
        except UsageError as error:
            return bare, error
    return bare, None


def hooks(plan: Plan) -> List[PlannedHook]:
    """Return the receivers of a run's events, without passwords in URLs."""
    return [
        PlannedHook(each.event, list(each.command) or None, each.url and Redaction().text(each.url))
        for each in plan.spec.hooks
    ]


def container(plan: Plan) -> Optional[PlannedContainer]:
    """Return the container in which each task would run."""
    given = plan.spec.container
    return None if given is None else PlannedContainer(given.image, given.runtime, list(given.args))


def remarks(plan: Plan) -> Iterator[str]:
    """Yield remarks on a plan, in addition to its numbers."""
    excess = oversized(plan)
    if excess is not None:
        yield f"`launch up` refuses this cluster: {excess}"
    if plan.spec.notice is not None:
        command, every_s = " ".join(map(shlex.quote, plan.spec.notice.command)), plan.spec.notice.every_s
        yield f"notice: every host runs `{command}` every {every_s:g} s, and leaves the run if the exit code is 0"
    if plan.spec.after:
        commands = ", ".join(f"`{command}`" for command in plan.spec.after)
        yield f"after: every host runs {commands} once its tasks have ended"
    for found in split_folders(plan.spec):
        yield f"{found.what}; {found.mend}"
    if plan.spec.command is not None:
        yield "command: the program places its variables itself; the launcher does not know their sizes"
    elif not is_modelled(plan):
        yield "network: unknown for in-graph replication over several workers: all traffic passes through the chief"
    elif plan.spec.train.mode == "async":
        yield "mode async: no worker waits for another; the time is for one step of every worker"
        n = plan.spec.train.local_steps
        if n > 1:
            yield f"train.local_steps: workers exchange once in {n} steps; a mean step has 1/{n} of the bytes and time"


def with_placement(bare: Outlook, plan: Plan, job: JobCode, python: str, nic_gbps: float) -> Outlook:
    """Return ``bare`` with ``placement``, ``variables`` and ``network`` added.

    Raises:
      UsageError: the job's code fails, or ``python`` does not exist.
      NoTensorFlow: ``python`` has no TensorFlow.
    """
    ends = TrafficEnds.of(plan)
    model = described(plan, job, python, network_model.share_of_a_ps(ends.workers))
    window = plan.spec.train.local_steps  # steps for one exchange
    held, pulled = [ps["bytes"] for ps in model["ps"]], [ps["pulled"] // window for ps in model["ps"]]
    fewest = {**model["fewest"], "pulled": model["fewest"]["pulled"] // window}
    network = network_model.describe(
        ends.workers, ends.servers, pulled, fewest, nic_gbps, model["overlapped"]
    ) if is_modelled(plan) else None  # fmt: skip
    return replace(
        bare,
        placement=[PsContent(end.task, ps["bytes"], ps["variables"]) for end, ps in zip(ends.servers, model["ps"])],
        variables=Variables(sum(held), max(held) * len(held) / sum(held) if sum(held) else 1.0, model["tables"]),
        network=network,
    )


def is_modelled(plan: Plan) -> bool:
    """Return whether the model of ``network`` fits this run.

    The model does not fit in-graph replication over several workers, where all traffic passes through the chief.
    """
    return plan.spec.train.replication == "between-graph" or len(TrafficEnds.of(plan).workers) == 1


def described(plan: Plan, job: JobCode, python: str, share: float) -> Dict[str, Any]:
    """Return the object that ``jobs.describe`` prints, run by ``python`` on this machine.

    Raises:
      UsageError, NoTensorFlow: the process fails.
    """
    try:
        ran = subprocess.run(
            [*_command(plan, job, python), "--share", str(share)],
            env=_environment(plan, job), capture_output=True, timeout=DESCRIBE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UsageError(f"job: its graph was not built within {DESCRIBE_S:.0f} s") from None
    except OSError as error:  # on Python 3.7 its strerror repeats the name
        raise UsageError(f"--python: cannot run {python}: {os.strerror(error.errno or 0)}") from None
    if ran.returncode != 0:
        raise _failure(python, ran.stderr.decode(errors="replace").strip().splitlines())
    printed: Dict[str, Any] = json.loads(ran.stdout.decode().splitlines()[-1])
    return printed


def _command(plan: Plan, job: JobCode, python: str) -> List[str]:
    """Return the command that builds the job's graph on this machine."""
    entry = str(job.folder / job.entry) if job.folder and job.entry.endswith(".py") else job.entry
    train = replace(plan.spec.train, towers=towers(plan.spec))  # this machine may have no GPUs to count
    folder = ["--folder", str(job.folder)] if job.folder else []
    settings = ["--train", json.dumps(train.to_dict()), "--args", json.dumps(plan.spec.args)]
    return [python, "-m", "jobs.describe", entry, *settings, *folder]


def _environment(plan: Plan, job: JobCode) -> Dict[str, str]:
    """Return this process's environment with the variables that the chief's graph depends on.

    Of the cluster, the graph depends only on the number of tasks.
    """
    chief = next(task for task in plan.tasks if task.chief)
    sizes = {role: ["-"] * len(addresses) for role, addresses in json.loads(plan.cluster).items()}
    paths = [str(PROJECT), *([str(job.folder)] if job.folder else [])]
    return {
        **os.environ,
        "TF_CONFIG": tf_config(json.dumps(sizes), chief.role, chief.index), "PYTHONPATH": os.pathsep.join(paths),
        "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2",
    }  # fmt: skip


def _failure(python: str, complaint: Sequence[str]) -> LaunchError:
    last = complaint[-1] if complaint else "no reason given"
    if last.startswith(_NO_TENSORFLOW):
        return NoTensorFlow(
            f"variables and network are not known: {python} has no TensorFlow to build the job's graph; "
            "name another Python of this machine with --python"
        )
    return UsageError(f"job: its graph cannot be built by {python}: {last}")
