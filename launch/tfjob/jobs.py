"""Read a TFJob: its roles, and how failed tasks are restarted."""

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from cluster.protocol.settings import Limits, Restart
from cluster.spec.model import ROLE_ORDER
from cluster.spec.place import Path
from cluster.spec.yaml_document import Document
from launch.tfjob.manifest_reader import ManifestReader
from launch.tfjob.replica_container import (
    ContainerVariables,
    find_container,
    read_command,
    read_environment,
    read_gpus,
    read_limits,
)

ROLES: Mapping[str, str] = {
    "ps": "ps", "chief": "chief", "master": "chief", "worker": "worker", "evaluator": "evaluator"
}  # fmt: skip
KINDS: Mapping[str, str] = {"ps": "PS", "chief": "Chief", "worker": "Worker", "evaluator": "Evaluator"}
MOST_REPLICAS = 10_000
NEVER, ON_FAILURE = "Never", "OnFailure"
ALL_WORKERS = "AllWorkers"
_POLICIES: Mapping[str, str] = {
    NEVER: "",
    ON_FAILURE: "",
    "Always": "a task that exits with 0 is not started again",
    "ExitCode": "exit codes 1 to 127 are restarted as well",
}
_REPLICAS = ("spec", "tfReplicaSpecs")


@dataclass(frozen=True)
class Role:
    """The tasks of one role, which are all alike."""

    role: str
    count: int
    command: Tuple[str, ...]
    env: Mapping[str, str]
    gpus: int
    limits: Limits


@dataclass(frozen=True)
class TFJob:
    """A TFJob in the words of a hosts file; ``restart_max`` is None where the manifest has no bound."""

    name: Optional[str]
    roles: Tuple[Role, ...]
    secrets: Tuple[str, ...]
    restart_max: Optional[int]


class _Job:
    """One reading of a manifest."""

    def __init__(self, reader: ManifestReader, entrypoint: Sequence[str]):
        self._reader = reader
        self._entrypoint = entrypoint
        self._roles: Dict[str, Role] = {}
        self._environments: Dict[str, ContainerVariables] = {}
        self._policies: Dict[str, Path] = {}

    def read(self) -> TFJob:
        reader = self._reader
        for key in ("apiVersion", "kind"):
            reader.take((key,))
        replicas = reader.inside(_REPLICAS, dict, "a mapping with PS, Chief, Worker or Evaluator")
        for kind in replicas:
            self._add(kind)
        if not {"chief", "worker"} & set(self._roles):
            reader.problem(_REPLICAS, "a Worker or a Chief with at least one replica", "none")
        self._refuse_dynamic_workers()
        self._compare_success()
        secrets = self._secrets()
        roles = tuple(self._roles[role] for role in ROLE_ORDER if role in self._roles)
        return TFJob(self._name(), roles, secrets, self._restart_max())

    def _name(self) -> Optional[str]:
        name = self._reader.get(("metadata", "name"), str, "a name")
        if name is None:
            name = self._reader.get(("metadata", "generateName"), str, "the beginning of a name")
        return name.rstrip("-.") if name else None

    def _add(self, kind: str) -> None:
        reader, path = self._reader, (*_REPLICAS, kind)
        role = ROLES.get(kind.lower())
        if role is None or role in self._roles:
            found = f"'{kind}'" if role is None else f"a second {role}, '{kind}'"
            reader.problem(path, "each of PS, Chief or Master, Worker and Evaluator at most once", found)
            return
        count = self._count(path, role)
        if count == 0:
            reader.take(path)
            reader.note(path, "not carried over: it has no replicas")
            return
        if kind.lower() == "master":
            reader.note(path, "the role is chief, and so it is in TF_CONFIG: an Estimator's master also evaluates")
        self._take_policy(path, kind)
        container = find_container(reader, path)
        if container is not None:
            self._add_role(role, count, container)

    def _count(self, path: Path, role: str) -> int:
        given = self._reader.get((*path, "replicas"), int, "a number of replicas")
        most = 1 if role in ("chief", "evaluator") else MOST_REPLICAS
        if given is not None and not 0 <= given <= most:
            self._reader.problem((*path, "replicas"), f"a number of replicas from 0 to {most}")
            return 1
        return 1 if given is None else int(given)

    def _add_role(self, role: str, count: int, container: Path) -> None:
        reader = self._reader
        environment = read_environment(reader, container)
        self._environments[role] = environment
        command = read_command(reader, container, environment, self._entrypoint)
        gpus, limits = read_gpus(reader, container), read_limits(reader, container)
        self._roles[role] = Role(role, count, command, environment.values, gpus, limits)

    def _secrets(self) -> Tuple[str, ...]:
        """Return the secrets of all roles; a hosts file gives them to every task."""
        secrets: List[str] = []
        for environment in self._environments.values():
            for name, path in environment.secrets.items():
                if any(name in other.values for other in self._environments.values()):
                    hint = "give it another name in a copy of the manifest"
                    self._reader.problem(path, "a variable that is a Secret's in every role", f"'{name}'", hint)
                secrets += [] if name in secrets else [name]
        return tuple(secrets)

    def _take_policy(self, path: Path, kind: str) -> None:
        path = (*path, "restartPolicy")
        policy = self._reader.get(path, str, "Never, OnFailure, Always or ExitCode") or NEVER
        if policy not in _POLICIES:
            self._reader.problem(path, "Never, OnFailure, Always or ExitCode")
        elif _POLICIES[policy]:
            self._reader.note(path, _POLICIES[policy])
        self._policies.setdefault(policy, path)

    def _restart_max(self) -> Optional[int]:
        """Return the number of restarts of a task: 0 where no role is restarted."""
        reader = self._reader
        path, limit = self._policy("backoffLimit")
        reader.typed(path, limit, int, "a number of restarts")
        if NEVER in self._policies:
            if len(self._policies) > 1:
                place = next(each for policy, each in self._policies.items() if policy != NEVER)
                hint = "restart of a hosts file is for all roles; write the same policy for all in a copy"
                reader.problem(place, "one restartPolicy, or Never for no role", "Never for another role", hint)
            return 0
        if limit is None:
            place = next(iter(self._policies.values()), ("spec",))
            reader.note(place, f"a task is restarted at most {Restart.max} times, not without end; see restart.max")
            return None
        reader.note(path, "restart.max counts the restarts of each task, not those of all tasks together")
        if isinstance(limit, int) and limit < 0:
            reader.problem(path, "a number of restarts")
        return int(limit) if isinstance(limit, int) else None

    def _policy(self, key: str) -> Tuple[Path, object]:
        """Return the place and the value of a key of ``runPolicy``; older operators have them directly in ``spec``."""
        paths: List[Path] = [("spec", "runPolicy", key), ("spec", key)]
        path = next((each for each in paths if self._reader.at(each) is not None), paths[0])
        return path, self._reader.take(path)

    def _refuse_dynamic_workers(self) -> None:
        path = ("spec", "enableDynamicWorker")
        if self._reader.get(path, bool, "true or false"):
            hint = "the TF_CONFIG of such a job has another form"
            self._reader.problem(path, "a fixed number of workers", "true", hint)

    def _compare_success(self) -> None:
        """Note where the run ends at another moment than the TFJob."""
        reader, path = self._reader, ("spec", "successPolicy")
        given = reader.get(path, str, "AllWorkers")
        workers = self._roles.get("worker")
        if "chief" not in self._roles and workers is not None and workers.count > 1 and given != ALL_WORKERS:
            reader.note(path, "the run succeeds when every worker has exited with 0, not when worker 0 has")
        place, policy = self._policy("cleanPodPolicy")
        if policy == "None":
            reader.note(place, "tasks that still run at the end are ended after leave_s")


def read_tfjob(document: Document, entrypoint: Sequence[str]) -> Tuple[TFJob, ManifestReader]:
    """Return a TFJob, and its reader with all problems, in the order of the file, and notes."""
    reader = ManifestReader(document)
    job = _Job(reader, entrypoint).read()
    reader.problems.sort(key=lambda problem: (problem.line or 0, problem.column or 0))
    return job, reader
