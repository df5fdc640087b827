"""plan.json in a run's folder: the request to the agent, for later verbs.

A verb may meet the file of a run that an older launcher began, or a newer one. So a verb reads only the fields that
it needs. Each field has a default: that of a run without the field.
"""

from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple

from cluster.protocol.settings import Container, Keep
from cluster.protocol.typed_json import from_values, to_values
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import Gpus, LeadAddress, RunRequest

PLAN = "plan.json"


@dataclass(frozen=True)
class KeptTask:
    """A task that the host was asked to run.

    Attributes:
      name: ``worker:1``.
      gpus: indices; or "all" of the host's; or "share", an equal part with other tasks.
      env: the variables that it got beside the host's own, without secrets.
    """

    name: str
    gpus: Gpus = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KeptRun:
    """The whole run, as its lead knows it.

    Attributes:
      hosts: those that take part, the lead first.
    """

    hosts: Tuple[str, ...] = ()


@dataclass(frozen=True)
class KeptPlan:
    """The fields of ``RunRequest`` in plan.json that later verbs read.

    Attributes:
      name: the name that runs of one hosts file share; "" where the file has none.
      file: the argument of verbs about the run; FILE where the file has none.
      lead: the place from which the run was led; None where the file has none.
      tasks: the tasks of the host; None where the file has none.
      run_plan: the whole run; None on members.
      code: the hash of each bundle, by its kind.
      environment: the hash of the Python environment of the tasks; None for the host's own Python.
      checkpoint_dir: the folder in which the chief saved; None for the run's own folder.
      token: the token that agents of the run prove to each other that they know; None where the file has none.
      user: who started the run, and on which machine; None where the file has none.
      detached: whether the keepers of the run start agents again.
      retention: the rule by which hosts remove past runs of this name; None where the file has none.
      container: the container of the tasks; None for no container.
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

    @property
    def names(self) -> Tuple[str, ...]:
        """Return the names of the host's tasks."""
        return tuple(task.name for task in self.tasks or ())


def write(folder: RunFolder, request: RunRequest) -> None:
    """Write the request to this host, without its secrets.

    Raises:
      OSError: there is no room, or no right to write.
    """
    kept = {key: value for key, value in to_values(request).items() if key != "secrets"}
    folder.write(PLAN, kept, durable=request.returns)


def exists(folder: RunFolder) -> bool:
    """Return whether plan.json exists on this host."""
    return (folder.own / PLAN).exists()


def read(folder: RunFolder) -> KeptPlan:
    """Return the host's kept request; a plan of defaults where there is no file.

    Raises:
      OSError: the file cannot be read.
      ValueError: it is damaged.
    """
    values = folder.read(PLAN)
    return KeptPlan() if values is None else from_values(KeptPlan, values)
