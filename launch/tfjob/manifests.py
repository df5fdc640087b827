"""Build a TFJob manifest from a spec whose tasks run a program under the key ``command``.

A placeholder of the command is replaced by its value if all tasks of a role have the same value. In a TFJob, only
``TF_CONFIG`` has the addresses, and the differences between tasks.
"""

import re
import sys
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence

import yaml

from cluster.errors import Problem
from cluster.protocol import env_values
from cluster.protocol.command_template import fill, names_in
from cluster.protocol.settings import Limits
from cluster.spec.model import ROLE_ORDER, Spec, TaskSpec
from cluster.spec.place import Path
from cluster.spec.yaml_document import Document
from launch.tfjob.jobs import ALL_WORKERS, KINDS, NEVER, ON_FAILURE
from launch.tfjob.manifest_reader import KIND, VERSION
from launch.tfjob.replica_container import CONTAINER, GPU, binary, escaped

PORT = 2222  # the operator's port in every TF_CONFIG


def values_of(spec: Spec, role: str, gpus: int, python: str) -> Dict[str, str]:
    """Return the values of the placeholders that have the same value for all tasks of ``role``."""
    return {
        "python": python,
        "role": role,
        "port": str(PORT),
        "num_ps": str(len(spec.tasks_of("ps"))),
        "num_workers": str(len(spec.tasks_of("worker"))),
        "gpus": str(gpus),
    }


def without_value(word: str, values: Dict[str, str]) -> List[str]:
    """Return the placeholders of a word that have no value in a manifest."""
    return [name for name in names_in(word) if name not in values]


LONGEST_NAME = 63  # of a service, which the operator creates for each task: NAME-ROLE-INDEX
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_CARRIED = ("name", "command", "cluster", "env", "secrets", "restart", "limits")
_KUBERNETES = {"memory_gib": "memory", "processors": "cpu"}
_SHARES = {"share": "a share of the host's GPUs", "all": "all GPUs of the host"}
_NO_FIELD = "a TFJob has no such field"
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
_REASONS: Mapping[str, str] = {
    "guard": "write a NetworkPolicy",
    "on": "Kubernetes has its own events",
    "notice": "Kubernetes drains its nodes itself",
    "keep": "see runPolicy.ttlSecondsAfterFinished",
    "before": "the image must run these commands",
    "after": "the image must run these commands",
    "container": "`--image` names the image",
    "setup": "the image must contain the Python environment",
    "python": "`--python` names the Python of the image",
    "leave_s": "when the run ends, the operator stops the other tasks at once",
    "ssh": "Kubernetes reaches its nodes itself",
    "transport": "Kubernetes reaches its nodes itself",
    "workdir": "tasks start in the working folder of the image",
}


class Manifest(NamedTuple):
    """A manifest, the problems of the spec, and a line for each key that is not in the manifest."""

    values: Dict[str, Any]
    problems: List[Problem]
    notes: List[str]


def manifest(spec: Spec, document: Document, image: str, python: str) -> Manifest:
    """Return the TFJob manifest for a spec.

    Args:
      document: the hosts file, for the positions in messages.
      image: the image of every container.
      python: the value of ``{python}`` in a command.
    """
    if spec.job is not None:
        return Manifest({}, [_job(document)], [])
    maker = _Maker(spec, document, image, python)
    values = maker.made()
    return Manifest(values, maker.problems, maker.notes)


def _job(document: Document) -> Problem:
    hint = "tasks of a job report to the launcher's agents, and resume through them; pods have no agents"
    return document.problem(("job",), "the key command", "job", hint, at_key=True)


class _Maker:
    """The construction of one manifest."""

    def __init__(self, spec: Spec, document: Document, image: str, python: str):
        self._spec, self._document = spec, document
        self._image, self._python = image, python
        self.problems: List[Problem] = []
        self.notes: List[str] = []

    def made(self) -> Dict[str, Any]:
        self._refuse_name()
        self.notes += self._left_out()
        roles = [role for role in ROLE_ORDER if self._spec.tasks_of(role)]
        policy: Dict[str, Any] = {"cleanPodPolicy": "Running"}
        if self._spec.restart.max:
            policy["backoffLimit"] = self._spec.restart.max
        spec: Dict[str, Any] = {"runPolicy": policy}
        if not self._spec.tasks_of("chief"):
            spec["successPolicy"] = ALL_WORKERS
        kinds = {**KINDS, "chief": self._spec.chief_name.capitalize()}
        spec["tfReplicaSpecs"] = {kinds[role]: self._replicas(role) for role in roles}
        return {"apiVersion": VERSION, "kind": KIND, "metadata": {"name": self._spec.name}, "spec": spec}

    def _refuse(self, path: Path, expected: str, found: str, hint: str) -> None:
        problem = self._document.problem(path, expected, found, hint)
        self.problems += [] if problem in self.problems else [problem]  # roles may share a command

    def _refuse_name(self) -> None:
        name = self._spec.name
        longest = max(len(f"{name}-{task.role}-{task.index}") for task in self._spec.tasks)
        if not _NAME.fullmatch(name) or longest > LONGEST_NAME:
            room = LONGEST_NAME - (longest - len(name))
            expected = f"a Kubernetes name: at most {room} of a-z, 0-9 and -, first a letter, last no -"
            self._refuse(("name",), expected, f"'{name}'", "set another name with --set name=NAME")

    def _left_out(self) -> Iterator[str]:
        if self._spec.secrets:
            secret = f"create it with `kubectl create secret generic {self._spec.name} --from-env-file=FILE`"
            place = self._document.place(("secrets",), at_key=True).naming(("secrets",))
            yield f"{place}: the values come from the Secret {self._spec.name}; {secret}"
        for key, value in self._document.value.items():
            if key not in _CARRIED and value not in (None, {}, [], False):
                yield self._note((key,), _REASONS.get(key, _NO_FIELD))
        for key in self._document.value.get("restart") or {}:
            if key != "max":
                yield self._note(("restart", key), "the operator has its own rules for restarts")

    def _note(self, path: Path, reason: str) -> str:
        return f"{self._document.place(path, at_key=True).naming(path)}: not carried over: {reason}"

    def _replicas(self, role: str) -> Dict[str, Any]:
        tasks = self._spec.tasks_of(role)
        self._refuse_unlike(role, tasks)
        container: Dict[str, Any] = {"name": CONTAINER, "image": self._image, "command": self._command(role, tasks[0])}
        given = {key: escaped(self._value(role, tasks[0].env, key)) for key in tasks[0].env}
        env: List[Dict[str, Any]] = [{"name": key, "value": value} for key, value in given.items()]
        env += [{"name": name, "valueFrom": self._secret(name)} for name in self._spec.secrets]
        limits = self._limits(role, tasks[0])
        container.update({key: value for key, value in (("env", env), ("resources", limits)) if value})
        return {
            "replicas": len(tasks),
            "restartPolicy": ON_FAILURE if self._spec.restart.max else NEVER,
            "template": {"spec": {"containers": [container]}},
        }

    def _value(self, role: str, env: Mapping[str, str], key: str) -> str:
        """Return the value of a variable; refuse one that only a host knows."""
        value = env_values.with_names(env, key) or ""
        found = [f"${name}" for name in env_values.names_in(value)] + (["~/"] if env_values.has_home(value) else [])
        for each in found[:1]:
            at = [section for section in (role, "all") if key in self._document.section("env", section)]
            path: Path = ("env", at[0], key) if at else ("cluster", role)
            self._refuse(path, "a value without ~ or host variables", each, "write the value itself")
        return value if found else env_values.text_of(value)

    def _refuse_unlike(self, role: str, tasks: Sequence[TaskSpec]) -> None:
        """Refuse tasks of one role that differ: a TFJob has one container for all of them."""
        hint = "a TFJob has one container for all tasks of a role"
        for task in tasks[1:]:
            unlike = [key for key, value in _alike(task).items() if value != _alike(tasks[0])[key]]
            if unlike:
                expected = f"the same {' and '.join(unlike)} for all tasks of the role"
                self._refuse(("cluster", role), expected, f"{task.name} with another value than {tasks[0].name}", hint)
                return
        if isinstance(tasks[0].gpus, str):
            hint = "write gpus: none, or a number, for this role"
            self._refuse(("cluster", role), "a number of GPUs for each task", _SHARES[tasks[0].gpus], hint)

    def _command(self, role: str, task: TaskSpec) -> List[str]:
        values = values_of(self._spec, role, len(task.gpus), self._python)
        words = self._spec.command_of(role)
        return [escaped(self._filled(role, index, word, values)) for index, word in enumerate(words)]

    def _filled(self, role: str, index: int, word: str, values: Dict[str, str]) -> str:
        path: Path = ("command", index)
        if isinstance(self._spec.command, Mapping):
            path = ("command", role, index)
        if env_values.word_with_home(word) != word:
            self._refuse(path, "a word without ~/", f"'{word}'", "write the full path in the image")
        for name in without_value(word, values):
            self._refuse(path, "placeholders with one value for all tasks of a role", f"{{{name}}}", _hint(name))
        return fill(word, values)

    def _secret(self, name: str) -> Dict[str, Any]:
        return {"secretKeyRef": {"name": self._spec.name, "key": name}}

    def _limits(self, role: str, task: TaskSpec) -> Dict[str, Any]:
        limits: Dict[str, Any] = {GPU: len(task.gpus)} if task.gpus else {}
        given = task.limits or Limits()
        for key in given.given():
            if key not in _KUBERNETES:
                self.notes.append(self._note(("limits", role, key), _NO_FIELD))
        if given.processors:
            limits["cpu"] = str(given.processors)
        if given.memory_bytes:
            limits["memory"] = binary(given.memory_bytes)
        return {"limits": limits} if limits else {}


def _hint(placeholder: str) -> str:
    if placeholder in ("run", "run_folder", "state_folder"):
        return "name a folder that the pods share"
    return "let the program read this value from TF_CONFIG, which Kubernetes also sets"


def _alike(task: TaskSpec) -> Dict[str, Any]:
    """Return the settings of a task that must be equal for all tasks of its role."""
    gpus = task.gpus if isinstance(task.gpus, str) else len(task.gpus)
    return {"gpus": gpus, "env": dict(task.env), "limits": task.limits}


def as_text(values: Dict[str, Any]) -> str:
    """Return a manifest as YAML, in which every text is quoted, except for keys and plain names."""
    return str(yaml.dump(values, Dumper=_Quoting, sort_keys=False, default_flow_style=False, width=sys.maxsize))


class _Quoting(yaml.SafeDumper):
    """A dumper that quotes every text that any version of YAML could read as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> Any:
    style = None if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Quoting.add_representer(str, _text)
