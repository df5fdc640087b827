"""The rules for the values of ``env:``, in which ``$NAME`` stands for a variable of the host."""

from typing import Collection, Dict, Iterator, List, Mapping, Sequence, Tuple

from cluster.errors import Problem
from cluster.protocol.env_values import DEEPEST, names_in, unknown
from cluster.spec.entries import Entry, env_at
from cluster.spec.model import ROLE_ORDER
from cluster.spec.place import Path
from cluster.spec.schema import Findings
from cluster.spec.yaml_document import Document
from cluster.task import RANK_VARIABLES

_SET_BY_AGENTS = ("LAUNCH_", "TF_CONFIG", "CUDA_", *RANK_VARIABLES)  # beginnings of names
Named = Mapping[str, Path]  # by name, where the variable's value is


def env_paths(document: Document, findings: Findings, entries: Sequence[Entry]) -> Iterator[Path]:
    """Yield the path of each variable under ``env:``: those of all tasks, then of the roles, then of the entries."""
    for section in ("all", *ROLE_ORDER):
        yield from _section(document, findings, section).values()
    for entry in entries:
        yield from _of_entry(entry).values()


def env_rules(
    document: Document, findings: Findings, entries: Sequence[Entry], secrets: Collection[str]
) -> Iterator[Problem]:
    """Yield a problem for each mistake in the values of ``env:``.

    Mistakes are a dollar sign without a meaning, the name of a secret, and a circular reference. With ``container``, a
    name is also a mistake if neither ``env:`` nor the launcher sets the variable.
    """
    paths = list(env_paths(document, findings, entries))
    in_container = document.value.get("container") is not None
    known = {str(path[-1]) for path in paths}
    for path in paths:
        value = document.written(path)
        piece = unknown(value)
        if piece is not None:
            hint = "for commands and defaults, run a shell, such as [sh, -c, …] under command"
            yield document.problem(path, "$NAME, ${NAME}, or $$ for a dollar sign", f"'{piece}'", hint)
        for name in names_in(value):
            if name in secrets:
                hint = f"leave it out: the program has the secret in its environment, as ${name}"
                yield document.problem(path, "a value without a secret", f"${name}", hint)
            elif in_container and not (name in known and name != path[-1]) and not name.startswith(_SET_BY_AGENTS):
                expected = "a variable that env or the launcher sets, since hosts do not know an image's variables"
                yield document.problem(path, expected, f"${name}", "write its value")
    yield from _circles(document, findings, entries)


def _section(document: Document, findings: Findings, section: str) -> Dict[str, Path]:
    if not findings.fit("env", section):
        return {}
    return {name: ("env", section, name) for name in env_at(document, ("env", section))}


def _of_entry(entry: Entry) -> Dict[str, Path]:
    return {name: (*entry.path, "env", name) for name in entry.env}


def _circles(document: Document, findings: Findings, entries: Sequence[Entry]) -> Iterator[Problem]:
    """Yield a problem for the first circle of names in the variables of each entry."""
    by_role: Dict[str, Named] = {
        role: {**_section(document, findings, "all"), **_section(document, findings, role)} for role in ROLE_ORDER
    }
    found: List[Problem] = []
    for entry in entries:
        named = {**by_role[entry.role], **_of_entry(entry)}
        links = {name: [each for each in names_in(document.written(path)) if each != name and each in named]
                 for name, path in named.items()}  # fmt: skip
        for name in links:
            way = _circle(name, links, (name,))
            if way:
                expected = f"no circular reference, and at most {DEEPEST} variables in a chain"
                problem = document.problem(named[name], expected, " → ".join(f"${each}" for each in way))
                found += [] if problem in found else [problem]
                break
    yield from found


def _circle(name: str, links: Mapping[str, Sequence[str]], above: Tuple[str, ...]) -> Tuple[str, ...]:
    """Return the names from the first one back to itself, or to the last one that is too deep; () for neither."""
    for each in links[name]:
        if each in above or len(above) >= DEEPEST:
            return (*above, each)[-4:]
        way = _circle(each, links, (*above, each))
        if way:
            return way
    return ()
