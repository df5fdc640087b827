"""The launcher's requests to the short-lived verbs of an agent, and their answers: one JSON line each."""

from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple

from cluster.protocol.settings import Keep
from launch.agent.wire.run_request import RunRequest, Wanted


@dataclass(frozen=True)
class RunReference:
    """A reference to one host's part of a run: of the newest run of a name, or of a given run.

    The verbs status, find, board and attach need no further fields. For ``find``, ``run`` is the name for a new
    run, and the answer shows whether the name is taken.

    Attributes:
      name: the name that runs of one hosts file share.
      host: this host, by the name in the hosts file.
      workdir: the working folder on this host; may begin with ``~``.
      run: the name of a given run; None for the newest.
    """

    name: str
    host: str
    workdir: str
    run: Optional[str] = None


@dataclass(frozen=True)
class LookRequest(RunReference):
    """Look for what a run has left on the host.

    Attributes:
      ended_by: the command by which a user ends the run for good, which the host records; None for a look alone.
    """

    ended_by: Optional[str] = None


@dataclass(frozen=True)
class RunsRequest:
    """List the runs of every name.

    Attributes:
      host: this host, by the name in the hosts file.
      workdir: the working folder on this host; may begin with ``~``.
    """

    host: str
    workdir: str


@dataclass(frozen=True)
class RestartRequest:
    """Restart tasks; the agent of the lead receives this request.

    Attributes:
      run: the run.
      tasks: the names of the tasks.
    """

    run: RunReference
    tasks: Tuple[str, ...]


@dataclass(frozen=True)
class DrainRequest:
    """Drain tasks, or take tasks back; the agent of the lead receives this request.

    Attributes:
      run: the run.
      tasks: the names of the tasks.
      back: whether to take the tasks back, so that they train again.
    """

    run: RunReference
    tasks: Tuple[str, ...]
    back: bool = False


@dataclass(frozen=True)
class DownRequest:
    """End the host's part of a run.

    Attributes:
      run: the run.
      timeout_s: the seconds that the agent has to stop the run; after a failure, it has as many again to kill the run.
      reason: the cause that the run's status shows afterwards.
      was: the pids of the run's processes that the launcher saw before the run's end.
      for_good: whether a user ends the run, which the host records with ``reason``: no run succeeds it.
      state: the run's state in that status, where the run's lead is dead and has recorded no end.
    """

    run: RunReference
    timeout_s: float
    reason: str
    was: Tuple[int, ...] = ()
    for_good: bool = False
    state: str = "stopped"


@dataclass(frozen=True)
class SweepRequest:
    """Find the leftovers of earlier runs.

    Attributes:
      host: this host, by the name in the hosts file.
      workdir: the working folder on this host; may begin with ``~``.
      kill: whether to end the leftovers.
      machine: the hosts of the file on the same machine, including this one; () where this host is alone. Each host
        looks for its own runs, and the first host also for the runs of names that the file does not have.
    """

    host: str
    workdir: str
    kill: bool
    machine: Tuple[str, ...] = ()


@dataclass(frozen=True)
class PruneRequest:
    """Find the past runs and the code to remove.

    Attributes:
      hosts: this machine, by its names in the hosts file.
      workdir: the working folder on this host; may begin with ``~``.
      name: the name shared by all runs of the hosts file.
      rule: the rule by which runs of this name are removed; for each other name, the rule of its newest run counts.
      now: the time by the launcher's clock, in seconds since 1970.
      remove: whether to remove the found runs and code.
    """

    hosts: Tuple[str, ...]
    workdir: str
    name: str
    rule: Keep
    now: float
    remove: bool = False


@dataclass(frozen=True)
class LogsRequest:
    """Send the lines of task logs.

    Attributes:
      run: the run.
      tasks: the names of the tasks.
      follow: whether to continue with new lines until the run has ended.
      since: the time from which lines count, in seconds since 1970; None for no bound.
      until: the time before which lines count, in seconds since 1970; None for no bound.
      tail: the number of last lines to send of each task; None for all.
    """

    run: RunReference
    tasks: Tuple[str, ...]
    follow: bool = False
    since: Optional[float] = None
    until: Optional[float] = None
    tail: Optional[int] = None


@dataclass(frozen=True)
class FlightRequest:
    """Send the newest spans of tasks.

    Attributes:
      run: the run.
      tasks: the names of the tasks.
      newest: the largest number of spans to send of each task.
    """

    run: RunReference
    tasks: Tuple[str, ...]
    newest: int


@dataclass(frozen=True)
class HeldRequest:
    """Report the checkpoints from which a run can resume.

    Attributes:
      run: the run whose checkpoints count; a reference without a run means all runs of the name.
      checkpoint_dir: ``train.checkpoint.dir``; None for the runs' own folders.
    """

    run: RunReference
    checkpoint_dir: Optional[str]


@dataclass(frozen=True)
class HandoverRequest:
    """Take a checkpoint from another host, or give a checkpoint to another host.

    Attributes:
      run: the run that will resume.
      checkpoint_dir: ``train.checkpoint.dir``; None for the runs' own folders.
      wanted: the checkpoint.
      generation: the generation of the run that wrote the checkpoint.
      address: ``host:port`` at which the taker listens and that the giver dials.
      token: the token that both hosts must prove to know.
      keep: the number of checkpoints to keep.
      guard: "nftables", which then lets only ``peers`` reach the address; None for no guard.
      peers: the names and addresses of the cluster; None without a guard.
    """

    run: RunReference
    checkpoint_dir: Optional[str]
    wanted: Wanted
    generation: int
    address: str
    token: str = field(repr=False)
    keep: int
    guard: Optional[str] = None
    peers: Optional[Tuple[str, ...]] = None


@dataclass(frozen=True)
class LockText:
    """The packages of an environment, as the text of requirements files for pip.

    Attributes:
      all: every requirement.
      tools: the requirements that pip itself depends on, which are installed first.
    """

    all: str
    tools: str


@dataclass(frozen=True)
class WheelFile:
    """A package that the launcher can send."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class BuildRequest:
    """Build a Python environment.

    Attributes:
      workdir: the working folder on this host; may begin with ``~``.
      environment: the hash that names the environment.
      locks: the packages, by version of Python, "3.7"; under "*" for every other version.
      files: the packages that the launcher can send to a host without them.
      offline: whether pip may use only ``files``.
      index_url: the package index, which may contain a password; None for the index of pip's configuration.
    """

    workdir: str
    environment: str
    locks: Mapping[str, LockText]
    files: Tuple[WheelFile, ...] = ()
    offline: bool = False
    index_url: Optional[str] = field(default=None, repr=False)


@dataclass(frozen=True)
class ExportRequest:
    """Export a checkpoint of a run, on the host of its chief.

    Answers are {"stage": words} during the export, {"file": name, "bytes": size} for each file of the SavedModel or of
    the delta, then {"data": base64} for its content. The last answer is {"done": contents, "checkpoint": name}.

    Attributes:
      run: the run, with the chief as its only task.
      step: the checkpoint of this step; None for the newest.
      path: a checkpoint anywhere on this host; None for a checkpoint of the run.
      save: whether the run, if it trains, saves first.
      since: the version of a checkpoint; the delta since this version is exported, and for ``0`` the whole model as a
        delta. None for a SavedModel.
    """

    run: RunRequest
    step: Optional[int] = None
    path: Optional[str] = None
    save: bool = False
    since: Optional[str] = None


@dataclass(frozen=True)
class GraphAnswer:
    """The result of the verb ``graph``, whose request is a ``RunRequest`` with the chief as its only task.

    Attributes:
      cause: the reason why the job's graph cannot be built, as in a task's report; None where it can be built, or where
        the host could not try.
    """

    cause: Optional[str] = None
