"""Find the TFJob in a file of one or several YAML documents."""

import re
from pathlib import Path
from typing import Iterator, List, Optional

from cluster.errors import Problem, SpecError
from cluster.spec.document import Document
from cluster.spec.file_text import text_of
from cluster.spec.place import Place, shown
from cluster.spec.yaml_text import parse

VERSION = "kubeflow.org/v1"
KIND = "TFJob"
_BETWEEN = re.compile(r"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)


def pieces(text: str) -> Iterator[str]:
    """Yield each document of a text, with empty lines before it, so that its lines keep their numbers.

    YAML allows ``---`` at the beginning of a line only between documents.
    """
    begins = [(0, 0), *(found.span() for found in _BETWEEN.finditer(text))]
    ends = [begin for begin, _ in begins[1:]] + [len(text)]
    for (begin, body), end in zip(begins, ends):
        yield "\n" * text.count("\n", 0, begin) + " " * (body - begin) + text[body:end]


def find_tfjob(path: Path, name: Optional[str]) -> Document:
    """Return the TFJob of a file: the only one, or the one of this name.

    Raises:
      SpecError: the file cannot be read, or has no such TFJob, or has several.
    """
    found: List[Document] = []
    for piece in pieces(text_of(path, "a manifest")):
        root, problems = parse(piece, str(path))
        if problems:
            raise SpecError(problems)
        if root is not None:
            found.append(Document(root))
    jobs = [each for each in found if isinstance(each.value, dict) and each.value.get("kind") == KIND]
    named = [each for each in jobs if name is None or _name(each) == name]
    if len(named) != 1:
        raise SpecError([_not_one(path, jobs, named, name)])
    _check_version(named[0])
    return named[0]


def _name(document: Document) -> str:
    metadata = document.value.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""


def _not_one(path: Path, jobs: List[Document], named: List[Document], name: Optional[str]) -> Problem:
    if not jobs:
        hint = "`kubectl get tfjob NAME -o yaml` prints one"
        return Place(str(path)).problem((), f"a document with kind: {KIND}", "none", hint)
    names = ", ".join(map(_name, jobs))
    if name is not None and not named:
        return Place(str(path)).problem((), f"a {KIND} named {shown(name)}", names)
    second = named[1].place(("kind",))
    return second.problem(("kind",), f"one {KIND}", f"{len(named)}: {names}", "choose one by --name")


def _check_version(document: Document) -> None:
    if document.value.get("apiVersion") != VERSION:
        found = document.found(("apiVersion",)) if "apiVersion" in document.value else "none"
        hint = "convert the manifest: the fields of other versions have other names"
        raise SpecError([document.problem(("apiVersion",), VERSION, found, hint)])
