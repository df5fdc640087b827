"""The receivers of a run's events, the key ``on``: those of a document, and the rules for them and for ``notice``."""

from typing import Any, Collection, Iterator, List, Mapping, NamedTuple, Tuple

from cluster.errors import Problem
from cluster.protocol.command_template import names_in
from cluster.spec.document import Document
from cluster.spec.model import Hook
from cluster.spec.place import Path
from cluster.spec.validation import Findings


class Written(NamedTuple):
    """A receiver, and the path at which it was written.

    ``is_short`` marks a URL, or the words of a command, in the place of a mapping.
    """

    path: Path
    values: Mapping[str, Any]
    is_short: bool = False

    def at(self, key: str) -> Path:
        """Return the path of the value of a key."""
        return self.path if self.is_short else (*self.path, key)

    @property
    def words(self) -> Iterator[Tuple[Path, str]]:
        """Yield the words of its command, and the path of each."""
        return (((*self.at("command"), index), word) for index, word in enumerate(self.values.get("command", ())))

    @property
    def templates(self) -> Iterator[Tuple[Path, str]]:
        """Yield the texts in which names of secrets may stand, and the path of each."""
        if "url" in self.values:
            yield self.at("url"), self.values["url"]
        yield from (((*self.path, "headers", name), text) for name, text in self.values.get("headers", {}).items())


def hooks(values: Mapping[str, Any]) -> Tuple[Hook, ...]:
    """Return every receiver of every event, in the order of the file."""
    return tuple(
        Hook(
            event,
            command=tuple(each.values.get("command", ())),
            url=each.values.get("url"),
            headers=dict(each.values.get("headers", {})),
        )
        for event, given in (values.get("on") or {}).items()
        for each in _receivers((), given)
    )


def hook_rules(document: Document, findings: Findings) -> Iterator[Problem]:
    """Yield every problem of ``on``, and of secrets in ``notice``, that the schema does not state."""
    events, listed = document.value.get("on"), document.value.get("secrets")
    secrets = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    for event, given in events.items() if isinstance(events, dict) else ():
        if findings.fit("on", event):
            yield from _mixture(document, ("on", event), given)
            for receiver in _receivers(("on", event), given):
                yield from _ways(document, receiver)
                yield from _urls_as_programs(document, receiver)
                yield from _secrets(document, receiver, secrets)
    if document.value.get("notice") is not None and findings.fit("notice"):
        yield from _secrets(document, Written(("notice",), document.value["notice"]), secrets)


def _receivers(path: Path, given: Any) -> List[Written]:
    """Return the receivers that are written at ``path``."""
    if isinstance(given, str):
        return [Written(path, {"url": given}, is_short=True)]
    if isinstance(given, dict):
        return [Written(path, given)]
    items = given or ()
    if items and all(isinstance(each, str) for each in items):
        return [Written(path, {"command": items}, is_short=True)]
    return [Written((*path, index), each) for index, each in enumerate(items) if isinstance(each, dict)]


def _mixture(document: Document, path: Path, given: Any) -> Iterator[Problem]:
    """Refuse a list in which words stand beside receivers."""
    if isinstance(given, list) and len({isinstance(each, str) for each in given}) > 1:
        expected, hint = "the words of one command, or a list of receivers", "write the command as {command: […]}"
        yield document.problem(path, expected, "both in one list", hint)


def _ways(document: Document, receiver: Written) -> Iterator[Problem]:
    """Refuse a receiver with two ways or none, and headers without a URL."""
    given = [key for key in ("url", "command") if key in receiver.values]
    if len(given) != 1:
        yield document.problem(receiver.path, "either url or command", "both" if given else "neither")
    elif "headers" in receiver.values and given == ["command"]:
        yield document.problem((*receiver.path, "headers"), "the key url beside it", "command", at_key=True)


def _urls_as_programs(document: Document, receiver: Written) -> Iterator[Problem]:
    """Refuse a URL in the place of a program: a list of texts is a command."""
    path, program = next(receiver.words, (receiver.path, ""))
    if program.startswith(("http://", "https://")):
        yield document.problem(path, "a program", "a URL", "write it without the brackets, or as {url: …}")


def _secrets(document: Document, receiver: Written, secrets: Collection[str]) -> Iterator[Problem]:
    """Refuse secrets among the words of a command, and names in a URL or header that are no secret."""
    for path, word in receiver.words:
        for name in set(names_in(word)).intersection(secrets):
            hint = f"the command has the secret in its environment, as ${name}; arguments can be read by others"
            yield document.problem(path, "a word without a secret", f"{{{name}}}", hint)
    for path, text in receiver.templates:
        for name in sorted(set(names_in(text)).difference(secrets)):
            hint = f"list it: secrets: [{', '.join([*secrets, name])}]"
            yield document.problem(path, "the names of secrets in braces", f"{{{name}}}", hint)
