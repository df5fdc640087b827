"""Read a hosts file into a ``Spec``, or raise an error with everything that is wrong with the file."""

from pathlib import Path
from typing import List, Sequence, Tuple, Union

from cluster.errors import Problem, SpecError
from cluster.spec.assembly import assemble, check_name
from cluster.spec.document import Document
from cluster.spec.entries import read_entries
from cluster.spec.file_text import text_of
from cluster.spec.gpus import assign_gpus
from cluster.spec.model import Spec
from cluster.spec.overrides import override
from cluster.spec.place import Place, shown
from cluster.spec.ports import assign_ports
from cluster.spec.rules import broken_rules
from cluster.spec.slots import slots_of
from cluster.spec.validation import validate
from cluster.spec.yaml_text import parse


def load(path: Union[str, Path], overrides: Sequence[str] = ()) -> Spec:
    """The spec in the hosts file at ``path``, after ``overrides`` such as ``train.steps=100``.

    Raises:
      SpecError: the file cannot be read, or something in it or in the overrides is wrong;
        lists every problem.
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
    """Return the document of a hosts file after its overrides, and the problems of its YAML.

    Raises:
      SpecError: the file cannot be read, or is no mapping.
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
        # In the order of the file, and then what the command line brought.
        raise SpecError(
            sorted(problems, key=lambda problem: (problem.line is None, problem.line or 0, problem.column or 0))
        )
