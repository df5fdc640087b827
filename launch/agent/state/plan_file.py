"""plan.json in a run's folder: the request to the agent, for later verbs.

A verb may read the file of a run that an older or a newer launcher began. So a verb reads only the fields that it
needs. Each field has a default, which holds for a run without the field.
"""

import contextlib
import json
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from cluster.protocol.settings import Container, Keep
from cluster.protocol.typed_json import to_values
from launch.agent.state.run_folder import RunFolder, name_of
from launch.agent.wire.run_request import Gpus, LeadAddress, RunRequest, Wanted

PLAN = "plan.json"
ENTRY = "jobs.main"  # in the command of a job's tasks


@dataclass(frozen=True)
class KeptTask:
    """A task in the request to the host.

    Attributes:
      name: the name of the task, such as ``worker:1``.
      gpus: the indices of GPUs; or "all" for all GPUs of the host; or "share" for an equal part with other tasks.
      env: the variables of the task in addition to the host's, without secrets.
      chief, argv: as in the request.
    """

    name: str
    gpus: Gpus = ()
    env: Mapping[str, str] = field(default_factory=dict)
    chief: bool = False
    argv: Tuple[str, ...] = ()


@dataclass(frozen=True)
class KeptRun:
    """The whole run, as the lead's request describes the run.

    Attributes:
      hosts: the hosts of the run, the lead first.
    """

    hosts: Tuple[str, ...] = ()


@dataclass(frozen=True)
class KeptPlan:
    """The fields of ``RunRequest`` in plan.json that later verbs read.

    Attributes:
      name: the name that runs of one hosts file share; "" where the file has no name.
      file: the argument of verbs about the run; FILE where the file has no argument.
      lead: the host and address of the lead; None where the file has no lead.
      tasks: the tasks of the host; None where the file has no tasks.
      run_plan: the whole run; None on members.
      code: the hash of each bundle, by its kind.
      environment: the hash of the Python environment of the tasks; None for the host's own Python.
      checkpoint_dir: the folder in which the chief saved; None for the run's own folder.
      token: the token that each agent of the run must prove to know; None where the file has no token.
      user: the user and the machine that started the run; None where the file has neither.
      detached: whether the keepers of the run restart agents.
      retention: the rule by which hosts remove past runs of this name; None where the file has no rule.
      container: the container of the tasks; None for no container.
      resume_from: the checkpoint that the run began with; None without a checkpoint, and on members.
    """

    name: str = ""
    file: str = "FILE"
    lead: Optional[LeadAddress] = None
    tasks: Optional[Tuple[KeptTask, ...]] = None
    run_plan: Optional[KeptRun] = None
    code: Mapping[str, str] = field(default_factory=dict)
    environment: Optional[str] = None
    checkpoint_dir: Optional[str] = None
    token: Optional[str] = field(default=None, repr=False)
    user: Optional[str] = None
    detached: bool = False
    retention: Optional[Keep] = None
    container: Optional[Container] = None
    resume_from: Optional[Wanted] = None

    @property
    def names(self) -> Tuple[str, ...]:
        """Return the names of the host's tasks."""
        return tuple(task.name for task in self.tasks or ())


def write(folder: RunFolder, request: RunRequest) -> None:
    """Write the request to this host, without its secrets; the file survives a power cut.

    After the boot, the launcher may start the agent again, or an operator may end the run; both read the file.

    Raises:
      OSError: the disk is full, or write access is missing.
    """
    kept = {key: value for key, value in to_values(request).items() if key != "secrets"}
    folder.write(PLAN, kept, durable=True)


def read(folder: RunFolder) -> KeptPlan:
    """Return the request to this host, as the file has it.

    Where no whole file exists, the result has the defaults and the name of the run: a verb may still have to end a run
    whose file is damaged.
    """
    return folder.read_record(PLAN, KeptPlan) or KeptPlan(name=name_of(folder.run))


def arguments(plan: KeptPlan) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Return the arguments of a run, and the keys of ``train``, from the command of its chief."""
    chief = next((task for task in plan.tasks or () if task.chief), None)
    if chief is None:
        return {}, {}
    options = _options(chief.argv)
    if ENTRY not in chief.argv:
        return options, {}
    with contextlib.suppress(ValueError):
        args, train = json.loads(options["args"]), json.loads(options["train"])
        return (args, train) if isinstance(args, dict) and isinstance(train, dict) else ({}, {})
    return {}, {}


def _options(argv: Sequence[str]) -> Dict[str, Any]:
    """Return the options of a command by name: ``--rate=0.1``, ``--rate 0.1``, and True for ``--verbose``."""
    found: Dict[str, Any] = {}
    for word, following in zip(argv, [*argv[1:], "--"]):
        name, equals, value = word[2:].partition("=")
        if word.startswith("--") and name:
            found[name] = value if equals else True if following.startswith("--") else following
    return found
