"""Read a manifest: the TFJob in a file of one or several YAML documents, and its values.

The reader notes which values were read. Values that were not read are not part of the result, and are reported.
"""

import re
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Iterator, List, Mapping, Optional, Set, Tuple, Type, Union

from yaml.nodes import Node, SequenceNode

from cluster.errors import Problem, SpecError
from cluster.spec.place import Path, Place, shown
from cluster.spec.reading import text_of
from cluster.spec.yaml_document import Document, child
from cluster.spec.yaml_text import parse

VERSION = "kubeflow.org/v1"
KIND = "TFJob"
LISTS = ("List", "TFJobList")
_BETWEEN = re.compile(r"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)


def pieces(text: str) -> Iterator[str]:
    """Yield each document of a text, after as many empty lines as needed to keep its line numbers.

    In YAML, ``---`` at the beginning of a line always separates documents.
    """
    begins = [(0, 0), *(found.span() for found in _BETWEEN.finditer(text))]
    ends = [begin for begin, _ in begins[1:]] + [len(text)]
    for (begin, body), end in zip(begins, ends):
        yield "\n" * text.count("\n", 0, begin) + " " * (body - begin) + text[body:end]


def find_tfjob(path: FilePath, name: Optional[str]) -> Document:
    """Return the TFJob of a file: the only TFJob, or the TFJob named ``name``.

    Raises:
      SpecError: the file cannot be read, has no such TFJob, or has several.
    """
    found: List[Document] = []
    for piece in pieces(text_of(path, "a manifest")):
        root, problems = parse(piece, str(path))
        if problems:
            raise SpecError(problems)
        if root is not None:
            found += map(Document, _members(root))
    jobs = [each for each in found if isinstance(each.value, dict) and each.value.get("kind") == KIND]
    named = [each for each in jobs if name is None or _name(each) == name]
    if len(named) != 1:
        raise SpecError([_not_one(path, jobs, named, name)])
    _check_version(named[0])
    return named[0]


def _members(root: Node) -> List[Node]:
    """Return the items of a ``List``, in which ``kubectl get -o yaml`` prints several objects; else the document."""
    kind, items = child(root, "kind"), child(root, "items")
    if kind is not None and kind[1].value in LISTS and items is not None and isinstance(items[1], SequenceNode):
        return list(items[1].value)
    return [root]


def _name(document: Document) -> str:
    metadata = document.value.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""


def _not_one(path: FilePath, jobs: List[Document], named: List[Document], name: Optional[str]) -> Problem:
    if not jobs:
        hint = "`kubectl get tfjob NAME -o yaml` prints such a document"
        return Place(str(path)).problem((), f"a document with kind: {KIND}", "none", hint)
    names = ", ".join(map(_name, jobs))
    if name is not None and not named:
        return Place(str(path)).problem((), f"a {KIND} named {shown(name)}", names)
    second = named[1].place(("kind",))
    return second.problem(("kind",), f"one {KIND}", f"{len(named)}: {names}", "choose one by --name")


def _check_version(document: Document) -> None:
    if document.value.get("apiVersion") != VERSION:
        found = document.found(("apiVersion",)) if "apiVersion" in document.value else "none"
        hint = "convert the manifest to this version: other versions name fields differently"
        raise SpecError([document.problem(("apiVersion",), VERSION, found, hint)])


_Kinds = Union[Type[Any], Tuple[Type[Any], ...]]
REASONS: Mapping[str, str] = {
    "image": "hosts run their own programs, not the image's, so the command must work there; see `launch setup`",
    "volumes": "make these paths on the hosts",
    "volumeMounts": "make these paths on the hosts",
    "initContainers": "run the same commands on the hosts before the run",
    "containers": "only the container named tensorflow is a task",
    "envFrom": "set the variables in env of the hosts file, or name them in secrets",
    "requests": "the launcher has no scheduler; it uses only resources.limits",
    "affinity": "tasks run on the hosts that you name",
    "nodeSelector": "tasks run on the hosts that you name",
    "tolerations": "tasks run on the hosts that you name",
    "schedulingPolicy": "tasks run on the hosts that you name",
    "schedulerName": "tasks run on the hosts that you name",
    "activeDeadlineSeconds": "add the key deadline_s to the hosts file",
    "ttlSecondsAfterFinished": "see the key keep of the hosts file",
    "suspend": "a run starts with `launch up`",
    "ports": "tasks take their ports from TF_CONFIG",
    "status": "it is the state of a job in Kubernetes",
    "valueFrom": "set the variable in env of the hosts file",
}
_NO_KEY = "a hosts file has no such key"


class ManifestReader:
    """A manifest, the paths of the values that were read so far, and the problems and notes about it."""

    def __init__(self, document: Document):
        self.document = document
        self.problems: List[Problem] = []
        self.noted: List[Tuple[Path, str]] = []
        self.read: Set[Path] = set()

    def notes(self) -> List[str]:
        """Return a line for every note and every value that was not read, in the order of the file."""
        left = [(path, f"not carried over: {_reason(path)}") for path in self._unread((), self.document.value)]
        lines = [(self.document.place(path, at_key=True), path, text) for path, text in [*self.noted, *left]]
        return [f"{place.naming(path)}: {text}" for place, path, text in sorted(lines, key=lambda line: line[0][1:])]

    def _unread(self, path: Path, value: Any) -> Iterator[Path]:
        if path in self.read or value in (None, "", {}, []):
            return
        if not any(each[: len(path)] == path for each in self.read):
            yield path
        elif isinstance(value, dict):
            for key, below in value.items():
                yield from self._unread((*path, key), below)
        elif isinstance(value, list):
            for index, below in enumerate(value):
                yield from self._unread((*path, index), below)


@dataclass(frozen=True)
class ManifestEntry:
    """A position in a manifest, with or without a value; ``entry["spec"]`` is the position of the key below it."""

    reader: ManifestReader
    path: Path = ()

    def __getitem__(self, key: Union[str, int]) -> "ManifestEntry":
        return ManifestEntry(self.reader, (*self.path, key))

    @property
    def value(self) -> Any:
        """Return the value, or None if there is none; this does not mark the value as read."""
        value = self.reader.document.value
        for key in self.path:
            if isinstance(key, int):
                value = value[key] if isinstance(value, list) and key < len(value) else None
            else:
                value = value.get(key) if isinstance(value, dict) else None
        return value

    def take(self) -> Any:
        """Return the value; mark it, and all values below it, as read."""
        self.reader.read.add(self.path)
        return self.value

    def get(self, kinds: _Kinds, expected: str) -> Any:
        """Return the value, and mark it as read; return None if the entry has no value.

        If the type of the value is not in ``kinds``, add a problem with ``expected``, and return None.
        """
        return self._typed(self.take(), kinds, expected)

    def text(self) -> str:
        """Return the value as a text, and mark it as read; the text of a missing value is ""."""
        value = self.get((str, int, float, bool), "a text")
        return "" if value is None else value if isinstance(value, str) else self.reader.document.written(self.path)

    def items(self, expected: str) -> List["ManifestEntry"]:
        """Return the entries of a list's items, which are read one by one."""
        return [self[index] for index in range(len(self._typed(self.value, list, expected) or []))]

    def mapping(self, expected: str) -> Mapping[str, Any]:
        """Return the mapping, whose values are read one by one; an empty mapping if there is no value."""
        return self._typed(self.value, dict, expected) or {}

    def _typed(self, value: Any, kinds: _Kinds, expected: str) -> Any:
        is_right = isinstance(value, kinds) and not (isinstance(value, bool) and kinds is int)
        if value is not None and not is_right:
            self.problem(expected)
        return value if is_right else None

    def problem(self, expected: str, found: Optional[str] = None, hint: str = "") -> None:
        """Add a problem: ``expected`` and ``found`` in words, and a hint; by default, ``found`` is the value."""
        document = self.reader.document
        shown = document.found(self.path) if found is None else found
        self.reader.problems.append(document.problem(self.path, expected, shown, hint))

    def note(self, text: str) -> None:
        """Add the note ``text``: the value has another effect under this launcher."""
        self.reader.noted.append((self.path, text))


def _reason(path: Path) -> str:
    keys = [key for key in path if isinstance(key, str)]
    return REASONS.get(keys[-1], _NO_KEY)
