"""Read a TFJob: its roles, and how failed tasks are restarted."""

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from cluster.protocol.settings import Limits, Restart
from cluster.spec.model import ROLE_ORDER
from cluster.spec.yaml_document import Document
from launch.tfjob.manifest_reader import ManifestEntry, ManifestReader
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
    "Always": "unlike in Kubernetes, a task that exits with 0 is not restarted",
    "ExitCode": "unlike in Kubernetes, exit codes 1 to 127 also cause a restart",
}


@dataclass(frozen=True)
class Role:
    """The tasks of one role, which all have the same settings."""

    role: str
    count: int
    command: Tuple[str, ...]
    env: Mapping[str, str]
    gpus: int
    limits: Limits


@dataclass(frozen=True)
class TFJob:
    """A TFJob in the terms of a hosts file; ``restart_max`` is None if the manifest has no limit."""

    name: Optional[str]
    roles: Tuple[Role, ...]
    secrets: Tuple[str, ...]
    restart_max: Optional[int]


class _Job:
    """The conversion of one manifest."""

    def __init__(self, manifest: ManifestEntry, entrypoint: Optional[Sequence[str]]):
        self._manifest = manifest
        self._spec = manifest["spec"]
        self._entrypoint = entrypoint
        self._roles: Dict[str, Role] = {}
        self._environments: Dict[str, ContainerVariables] = {}
        self._policies: Dict[str, ManifestEntry] = {}

    def read(self) -> TFJob:
        for key in ("apiVersion", "kind"):
            self._manifest[key].take()
        replicas = self._spec["tfReplicaSpecs"]
        for kind in replicas.mapping("a mapping with the keys PS, Chief, Worker or Evaluator"):
            self._add(kind, replicas[kind])
        if not {"chief", "worker"} & set(self._roles):
            replicas.problem("a Worker or a Chief with at least one replica", "none")
        self._refuse_dynamic_workers()
        self._compare_success()
        secrets = self._secrets()
        roles = tuple(self._roles[role] for role in ROLE_ORDER if role in self._roles)
        return TFJob(self._name(), roles, secrets, self._restart_max())

    def _name(self) -> Optional[str]:
        metadata = self._manifest["metadata"]
        name = metadata["name"].get(str, "a name")
        if name is None:
            name = metadata["generateName"].get(str, "the beginning of a name")
        return name.rstrip("-.") if name else None

    def _add(self, kind: str, replica: ManifestEntry) -> None:
        role = ROLES.get(kind.lower())
        if role is None or role in self._roles:
            found = f"'{kind}'" if role is None else f"a second {role}, '{kind}'"
            replica.problem("only PS, Chief or Master, Worker and Evaluator, each at most once", found)
            return
        count = _count(replica["replicas"], role)
        if count == 0:
            replica.take()
            replica.note("not carried over: the role has no replicas")
            return
        if kind.lower() == "master":
            replica.note(
                "the role becomes chief, also in TF_CONFIG; an Estimator's master also evaluates, its chief does not"
            )
        self._take_policy(replica["restartPolicy"])
        container = find_container(replica)
        if container is not None:
            environment = self._environments[role] = read_environment(container)
            command = read_command(container, environment, self._entrypoint)
            gpus, limits = read_gpus(container), read_limits(container)
            self._roles[role] = Role(role, count, command, environment.values, gpus, limits)

    def _secrets(self) -> Tuple[str, ...]:
        """Return the secrets of all roles; with a hosts file, every task receives all of them."""
        secrets: List[str] = []
        for environment in self._environments.values():
            for name, entry in environment.secrets.items():
                if any(name in other.values for other in self._environments.values()):
                    hint = "rename the variable in a copy of the manifest"
                    entry.problem("a variable that comes from a Secret in every role", f"'{name}'", hint)
                secrets += [] if name in secrets else [name]
        return tuple(secrets)

    def _take_policy(self, entry: ManifestEntry) -> None:
        expected = "Never, OnFailure, Always or ExitCode"
        policy = entry.get(str, expected) or NEVER
        if policy not in _POLICIES:
            entry.problem(expected)
        elif _POLICIES[policy]:
            entry.note(_POLICIES[policy])
        self._policies.setdefault(policy, entry)

    def _restart_max(self) -> Optional[int]:
        """Return the number of restarts of a task: 0 where no role is restarted."""
        entry = self._of_run("backoffLimit")
        limit = entry.get(int, "a number of restarts")
        if NEVER in self._policies:
            if len(self._policies) > 1:
                place = next(each for policy, each in self._policies.items() if policy != NEVER)
                hint = "a hosts file has one policy for all roles; set the same in a copy of the manifest"
                place.problem("one restartPolicy for all roles, or no role with Never", "Never for another role", hint)
            return 0
        if entry.value is None:
            place = next(iter(self._policies.values()), self._spec)
            place.note(f"a task is restarted at most {Restart.max} times, not without limit; see restart.max")
            return None
        entry.note("restart.max limits the restarts of each task, not of all tasks together")
        if limit is not None and limit < 0:
            entry.problem("a number of restarts")
        return None if limit is None else int(limit)

    def _of_run(self, key: str) -> ManifestEntry:
        """Return the entry of a key in ``runPolicy``; older operators have the key directly in ``spec``."""
        now, before = self._spec["runPolicy"][key], self._spec[key]
        return before if now.value is None and before.value is not None else now

    def _refuse_dynamic_workers(self) -> None:
        entry = self._spec["enableDynamicWorker"]
        if entry.get(bool, "true or false"):
            entry.problem("a fixed number of workers", "true", "with dynamic workers, TF_CONFIG has another format")

    def _compare_success(self) -> None:
        """Add a note if the run ends at a different moment than the TFJob."""
        entry = self._spec["successPolicy"]
        given = entry.get(str, "AllWorkers")
        workers = self._roles.get("worker")
        if "chief" not in self._roles and workers is not None and workers.count > 1 and given != ALL_WORKERS:
            what = "the run succeeds when every worker has exited with 0, not only worker 0"
            entry.note(f"{what}; set success: worker:0 to keep the manifest's rule")
        policy = self._of_run("cleanPodPolicy")
        if policy.take() == "None":
            policy.note("tasks that still run when the run ends are stopped after leave_s seconds")


def _count(entry: ManifestEntry, role: str) -> int:
    given = entry.get(int, "a number of replicas")
    most = 1 if role in ("chief", "evaluator") else MOST_REPLICAS
    if given is not None and not 0 <= given <= most:
        entry.problem(f"a number of replicas from 0 to {most}")
        return 1
    return 1 if given is None else int(given)


def read_tfjob(document: Document, entrypoint: Optional[Sequence[str]]) -> Tuple[TFJob, ManifestReader]:
    """Return a TFJob, and the reader of its manifest with all problems and notes, in the order of the file."""
    reader = ManifestReader(document)
    job = _Job(ManifestEntry(reader), entrypoint).read()
    reader.problems.sort(key=lambda problem: (problem.line or 0, problem.column or 0))
    return job, reader
