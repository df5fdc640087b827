"""Puts a ``Spec`` together from a document in which nothing is wrong."""

from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple

from cluster.errors import Problem
from cluster.protocol.limits import Limits
from cluster.spec.document import Document
from cluster.spec.entries import env_at
from cluster.spec.hooks import hooks
from cluster.spec.model import (
    ROLE_ORDER,
    Command,
    Container,
    Elastic,
    Keep,
    Notice,
    Restart,
    Setup,
    Spec,
    Ssh,
    TaskSpec,
)
from cluster.spec.schema import in_words, keys
from cluster.spec.slots import Slot
from cluster.task import Train


def check_name(document: Document, path: Path) -> Iterator[Problem]:
    """Yield a problem where ``name`` is missing and the file's own name cannot replace it."""
    from jsonschema import Draft7Validator  # only here: the Tab key reads no file

    node = keys()["name"]
    if document.value.get("name") is None and not Draft7Validator(node).is_valid(path.stem):
        yield document.problem(("name",), in_words(node), f"the file's name '{path.stem}'", "add the key name")


def assemble(document: Document, path: Path, slots: Sequence[Slot]) -> Spec:
    """The spec of ``document``; ``slots`` have their ports and GPUs."""
    values: Dict[str, Any] = {key: value for key, value in document.value.items() if value is not None}
    whole = ("job", "args", "python", "workdir", "leave_s", "guard", "allow_public", "transport")
    plain = {key: values[key] for key in whole if key in values}
    return Spec(
        path=path,
        name=values.get("name", path.stem),
        tasks=_tasks(document, slots, values.get("python")),
        command=_command(values.get("command")),
        train=Train.from_dict(values.get("train", {})),
        restart=Restart(**values.get("restart", {})),
        elastic=Elastic(**values["elastic"]) if "elastic" in values else None,
        keep=Keep(**values["keep"]) if "keep" in values else None,
        before=tuple(values.get("before", ())),
        after=tuple(values.get("after", ())),
        secrets=tuple(values.get("secrets", ())),
        hooks=hooks(values),
        notice=_notice(values.get("notice")),
        ssh=Ssh(**values.get("ssh", {})),
        setup=Setup(**values["setup"]) if "setup" in values else None,
        container=_container(values.get("container")),
        job_at=document.place(("job",)).naming(("job",)),
        **plain,
    )


def _command(given: Any) -> Optional[Command]:
    if not isinstance(given, dict):
        return None if given is None else tuple(given)
    return {role: tuple(words) for role, words in given.items() if words is not None}


def _notice(given: Any) -> Optional[Notice]:
    return None if given is None else Notice(**{**given, "command": tuple(given["command"])})


def _container(given: Any) -> Optional[Container]:
    return None if given is None else Container(**{**given, "args": tuple(given.get("args", ()))})


def _tasks(document: Document, slots: Sequence[Slot], python: Any) -> Tuple[TaskSpec, ...]:
    envs = {role: {**env_at(document, ("env", "all")), **env_at(document, ("env", role))} for role in ROLE_ORDER}
    limits = {role: {**_limits_at(document, "all"), **_limits_at(document, role)} for role in ROLE_ORDER}
    # One machine has one name, the first that the file uses, however it is called later.
    names: Dict[str, str] = {}
    by_file = [_task(slot, names.setdefault(slot.machine, slot.host), envs, limits, python) for slot in slots]
    return tuple(sorted(by_file, key=lambda task: ROLE_ORDER.index(task.role)))


def _limits_at(document: Document, section: str) -> Mapping[str, Any]:
    return (document.value.get("limits") or {}).get(section) or {}


def _task(
    slot: Slot,
    host: str,
    envs: Mapping[str, Mapping[str, str]],
    limits: Mapping[str, Mapping[str, Any]],
    python: Any,
) -> TaskSpec:
    entry = slot.entry
    limited = Limits(**{**limits[entry.role], **entry.limits})
    return TaskSpec(
        role=entry.role,
        index=slot.index,
        host=host,
        address=f"[{slot.address}]:{slot.port}" if ":" in slot.address else f"{slot.address}:{slot.port}",
        port=slot.port,
        gpus=slot.gpus,
        python=entry.python or python,
        env={**envs[entry.role], **entry.env},
        limits=limited if limited.given() else None,
        line=entry.place.line,
        spare=entry.spare,
    )
