"""Read a hosts file into a ``Spec``, or raise an error with everything that is wrong with the file.

The text is read first: a folder, a pipe, a device or a huge file is refused without being read. A ``Spec`` is built
last, from a document without problems.
"""

import difflib
import itertools
import os
import shlex
import stat
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from cluster.errors import Problem, SpecError
from cluster.protocol.settings import RUN_FOLDER, TASK_FOLDER, Limits
from cluster.protocol.typed_json import fields_in
from cluster.spec.entries import MASTER, env_at, read_entries
from cluster.spec.model import ROLE_ORDER, Spec, TaskSpec
from cluster.spec.place import Place, shown
from cluster.spec.rules import broken_rules
from cluster.spec.schema import in_words, keys, validate
from cluster.spec.section_rules import hooks_of
from cluster.spec.task_slots import Slot, assign_gpus, assign_ports, slots_of
from cluster.spec.yaml_document import Document, override
from cluster.spec.yaml_text import parse
from cluster.task import Train

LARGEST_MIB = 2  # a file of 10,000 tasks, each on its own line, has less than one
HOSTS_FILE = "a hosts file"
LISTED = 1000  # names of a folder that are compared with a missing file's name
_SHORTER = 'write ranges: "gpu[01-64]"'
_KINDS_OF_FILE = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))


def text_of(path: Path, what: str = HOSTS_FILE) -> str:
    """Return the text of the file at ``path``, a hosts file or another file of YAML.

    Args:
      what: the file's kind in words, for errors.

    Raises:
      SpecError: the file is not a text file in UTF-8, is too large, or cannot be read.
    """
    try:
        mode = os.stat(str(path)).st_mode
        if not stat.S_ISREG(mode):
            kind = next((name for is_one, name in _KINDS_OF_FILE if is_one(mode)), "a device")
            raise _refusal(path, what, kind, _in_the_folder(path) if stat.S_ISDIR(mode) else "write it to a file")
        with open(str(path), "rb") as file:
            data = file.read((LARGEST_MIB << 20) + 1)
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise _refusal(path, f"{what} that can be read", reason, _next_step(path, error)) from error
    if len(data) > LARGEST_MIB << 20:
        raise _refusal(
            path, f"{what} of at most {LARGEST_MIB} MiB", "a larger one", _SHORTER if what == HOSTS_FILE else ""
        )
    return _decoded(path, data)


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = Place(str(path), line, 1).problem((), "text in UTF-8", f"the byte 0x{data[error.start]:02x}")
        raise SpecError([problem]) from error


def _refusal(path: Path, expected: str, found: str, hint: str) -> SpecError:
    return SpecError([Place(str(path)).problem((), expected, found, hint)])


def _next_step(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        near = difflib.get_close_matches(path.name, _hosts_files(path.parent), 1)
        return f"did you mean {path.with_name(near[0])}?" if near else ""
    return f"see `ls -l {shlex.quote(str(path))}`" if isinstance(error, PermissionError) else ""


def _in_the_folder(folder: Path) -> str:
    found = sorted(_hosts_files(folder), key=lambda name: (name != "hosts.yaml", name))
    return f"did you mean {folder / found[0]}?" if found else "name a file in it"


def _hosts_files(folder: Path) -> List[str]:
    try:
        with os.scandir(str(folder)) as entries:
            names = [entry.name for entry in itertools.islice(entries, LISTED)]
    except OSError:
        return []
    return [name for name in names if name.endswith((".yaml", ".yml"))]


def check_name(document: Document, path: Path) -> Iterator[Problem]:
    """Yield a problem if ``document`` has no key ``name``, and the file's name in ``path`` is not a valid one."""
    expected = unfit_for_name(path.stem) if document.value.get("name") is None else None
    if expected is not None:
        yield document.problem(("name",), expected, f"the file's name '{path.stem}'", "add the key name")


def unfit_for_name(text: str) -> Optional[str]:
    """Return a description of valid names of runs if ``text`` is not such a name; otherwise None."""
    from jsonschema import Draft7Validator  # only here: completion with the Tab key reads no file

    node = keys()["name"]
    return None if Draft7Validator(node).is_valid(text) else in_words(node)


def assemble(document: Document, path: Path, slots: Sequence[Slot]) -> Spec:
    """Return the spec of ``document``, which fits the schema; ``slots`` have their ports and GPUs."""
    values: Dict[str, Any] = {key: value for key, value in document.value.items() if value is not None}
    train = Train.from_dict(values.pop("train", {}))
    values.setdefault("folder", RUN_FOLDER if "command" in values else TASK_FOLDER)
    return Spec(
        path=path,
        tasks=_tasks_of(document, slots, values.get("python")),
        train=train,
        hooks=hooks_of(values),
        job_at=document.place(("job",)).naming(("job",)),
        chief_name=MASTER if document.section("cluster").get(MASTER) else "chief",
        **{"name": path.stem, **fields_in(Spec, values)},
    )


def _tasks_of(document: Document, slots: Sequence[Slot], python: Any) -> Tuple[TaskSpec, ...]:
    envs = {role: {**env_at(document, ("env", "all")), **env_at(document, ("env", role))} for role in ROLE_ORDER}
    limits = {role: {**document.section("limits", "all"), **document.section("limits", role)} for role in ROLE_ORDER}
    # One machine has one name: the first of its names in the file.
    names: Dict[str, str] = {}
    by_file = [_task_of(slot, names.setdefault(slot.machine, slot.host), envs, limits, python) for slot in slots]
    return tuple(sorted(by_file, key=lambda task: ROLE_ORDER.index(task.role)))


def _task_of(
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


def load(path: Union[str, Path], overrides: Sequence[str] = ()) -> Spec:
    """Return the spec in the hosts file at ``path``, after ``overrides`` such as ``train.steps=100``.

    Raises:
      SpecError: the file cannot be read, or the file or the overrides have mistakes; the error lists every problem.
    """
    document, problems = read_document(Path(path), overrides)
    findings = validate(document)
    entries, unreadable = read_entries(document, findings)
    slots = slots_of(entries)
    problems += [*findings.problems, *unreadable, *assign_ports(slots), *assign_gpus(slots)]
    problems += [*broken_rules(document, findings, entries, not unreadable), *check_name(document, Path(path))]
    _raise_any(problems)
    return assemble(document, Path(path), slots)


def read_document(path: Path, overrides: Sequence[str] = ()) -> Tuple[Document, List[Problem]]:
    """Return the document of the hosts file at ``path`` after ``overrides``, and the problems of their YAML.

    Raises:
      SpecError: the file cannot be read or parsed, or the document is not a mapping.
    """
    root, problems = parse(text_of(path), str(path))
    if root is None:
        empty = Place(str(path), 1, 1).problem((), "the keys cluster and job", "an empty file")
        raise SpecError(problems or [empty])
    root, wrong = override(root, overrides)
    document = Document(root)
    if not isinstance(document.value, dict):
        wrong.append(document.problem((), "a mapping with the keys cluster and job", shown(document.value)))
        _raise_any([*problems, *wrong])
    return document, [*problems, *wrong]


def _raise_any(problems: Sequence[Problem]) -> None:
    if problems:
        # First the problems of the file, in the order of its lines; then those of the command line.
        raise SpecError(
            sorted(problems, key=lambda problem: (problem.line is None, problem.line or 0, problem.column or 0))
        )
