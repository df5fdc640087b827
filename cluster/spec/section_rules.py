"""The rules for the sections ``container``, ``elastic``, ``progress`` and ``on`` beyond the JSON Schema.

``spares`` belongs to ``elastic``, and ``success`` to ``command``. ``on`` has the receivers of a run's events.
``notice`` has the same rules for secrets as the receivers.
"""

from typing import Any, Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from cluster.errors import Problem
from cluster.protocol.command_template import names_in
from cluster.protocol.progress_lines import mistake_in
from cluster.protocol.settings import Hook, is_image_file
from cluster.protocol.typed_json import from_values
from cluster.spec.place import Path
from cluster.spec.schema import Findings
from cluster.spec.yaml_document import Document

# Options that would hide a task from the launcher.
TAKEN_OPTIONS = ("-d", "--detach", "--name")


def container_rules(document: Document) -> Iterator[Problem]:
    """Yield problems for an image that its runtime cannot use, ``setup`` beside ``container``, and unsuitable options.

    Options are unsuitable if they hide a task from the launcher.
    """
    yield from _image(document)
    if document.value.get("setup") is not None:
        hint = "remove one of them: setup uses the hosts' Python, but tasks run with the Python of the image"
        yield document.problem(("setup",), "no key container in the same file", "container", hint, at_key=True)
    for index, word in enumerate(document.value["container"].get("args", ())):
        option = word.partition("=")[0]
        if option in TAKEN_OPTIONS:
            expected = f"an option other than {option}, which hides a task from the launcher"
            yield document.problem(("container", "args", index), expected, f"'{word}'", "leave it out")


def _image(document: Document) -> Iterator[Problem]:
    """Refuse an image name for apptainer, which would download it for every task, and a path for other runtimes."""
    given: Dict[str, Any] = document.value["container"]
    image, runtime = given["image"], given.get("runtime")
    if runtime == "apptainer" and not is_image_file(image):
        hint = f"make the file first: `apptainer pull /path/on/the/hosts.sif docker://{image}`"
        yield document.problem(("container", "image"), "an absolute path, for apptainer", f"'{image}'", hint)
    elif runtime in ("podman", "docker") and is_image_file(image):
        expected = f"the name of an image, for {runtime}"
        yield document.problem(("container", "image"), expected, f"'{image}'", "use runtime: apptainer for a file")


def progress_rules(document: Document, findings: Findings) -> Iterator[Problem]:
    """Yield problems for a mistake in the expression ``progress``, and for ``progress`` without ``command``.

    The expression reads the log of a program, which only ``command`` has.
    """
    expression = document.value.get("progress")
    if expression is None or not findings.fit("progress"):
        return
    if document.value.get("command") is None and findings.fit("command"):
        hint = "remove it: a job reports its steps itself"
        yield document.problem(("progress",), "the key command in the same file", "job", hint, at_key=True)
    mistake = mistake_in(expression)
    if mistake is not None:
        yield document.problem(("progress",), *mistake)


def elastic_rules(document: Document, findings: Findings, workers: Optional[int]) -> Iterator[Problem]:
    """Yield every problem of ``elastic`` and ``spares`` that the schema does not detect.

    Args:
      workers: the number of tasks that compute gradients; None where the number is unknown.
    """
    if document.value.get("spares") and document.value.get("elastic") is None:
        expected, hint = "the key elastic in the same file", "add elastic: {min_workers: 1}, or leave spares out"
        yield document.problem(("spares",), expected, "none", hint, at_key=True)
    if document.value.get("elastic") is None or not findings.fit("elastic"):
        return
    yield from _unfit_for_elastic(document, findings)
    if findings.fit("train", "backup_workers"):
        yield from _min_workers(document, workers)


def _unfit_for_elastic(document: Document, findings: Findings) -> Iterator[Problem]:
    """Yield a problem for each setting that ``elastic`` excludes.

    An elastic run restarts from a checkpoint, and its tasks read the cluster from ``TF_CONFIG``.
    """
    if document.value.get("command") is not None:
        found, hint = "command", "leave elastic out: the launcher does not know this program's checkpoints"
        yield document.problem(("elastic",), "a job", found, hint, at_key=True)
    train = document.section("train")
    if findings.fit("train", "replication") and train.get("replication") == "in-graph":
        found, hint = "in-graph", "leave elastic out, or train between-graph"
        yield document.problem(("train", "replication"), "between-graph with elastic", found, hint)
    if findings.fit("train", "sync") and train.get("sync") == "stock":
        hint = "leave elastic out, or train with sync: plain"
        yield document.problem(("train", "sync"), "overlapped or plain with elastic", "stock", hint)


def _min_workers(document: Document, workers: Optional[int]) -> Iterator[Problem]:
    least, backups = document.value["elastic"]["min_workers"], document.section("train").get("backup_workers", 0)
    if workers is not None and least > workers:
        expected = f"at most as many as there are workers ({workers})"
        yield document.problem(("elastic", "min_workers"), expected, str(least))
    elif backups and least <= backups:
        expected = f"more than train.backup_workers ({backups})"
        yield document.problem(("elastic", "min_workers"), expected, str(least))


def success_rules(document: Document, findings: Findings, workers: Optional[int]) -> Iterator[Problem]:
    """Yield problems for ``success`` beside a job, and for a ``success`` that names a worker outside the cluster.

    A job reports its own success.

    Args:
      workers: the number of tasks of the role worker; None where the number is unknown.
    """
    success = document.value.get("success")
    if success is None or not findings.fit("success"):
        return
    if document.value.get("command") is None and document.value.get("job") is not None:
        hint = "leave success out: a job has succeeded when its chief reports success"
        yield document.problem(("success",), "the key command in the same file", "job", hint, at_key=True)
    index = success.partition(":")[2]
    if index and workers is not None and int(index) >= workers:
        expected = f"a worker of cluster: worker:0 to worker:{workers - 1}" if workers else "a worker of cluster"
        yield document.problem(("success",), expected, f"'{success}'")


class WrittenReceiver(NamedTuple):
    """A receiver of events as the mapping ``values``, and its ``path`` in the file.

    ``is_short``: whether the file has only a URL, or only the words of a command, in place of the mapping.
    """

    path: Path
    values: Mapping[str, Any]
    is_short: bool = False

    def at(self, key: str) -> Path:
        """Return the path in the file of the receiver's value for ``key``."""
        return self.path if self.is_short else (*self.path, key)

    @property
    def words(self) -> Iterator[Tuple[Path, str]]:
        """Return an iterator over pairs (path, word), one for each word of the receiver's command."""
        return (((*self.at("command"), index), word) for index, word in enumerate(self.values.get("command", ())))

    @property
    def templates(self) -> Iterator[Tuple[Path, str]]:
        """Yield pairs (path, text) for the URL and the headers, the texts that may contain names of secrets."""
        if "url" in self.values:
            yield self.at("url"), self.values["url"]
        yield from (((*self.path, "headers", name), text) for name, text in self.values.get("headers", {}).items())


def hooks_of(values: Mapping[str, Any]) -> Tuple[Hook, ...]:
    """Return every receiver of every event under ``on`` in ``values``, the mapping of a hosts file, in its order."""
    return tuple(
        from_values(Hook, {"event": event, **each.values})
        for event, given in (values.get("on") or {}).items()
        for each in _receivers((), given)
    )


def hook_rules(document: Document, findings: Findings) -> Iterator[Problem]:
    """Yield every problem of ``on``, and of secrets in ``notice``, that the schema does not detect."""
    events, listed = document.value.get("on"), document.value.get("secrets")
    secrets = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    for event, given in events.items() if isinstance(events, dict) else ():
        if findings.fit("on", event):
            yield from _mixture(document, ("on", event), given)
            for receiver in _receivers(("on", event), given):
                yield from _ways(document, receiver)
                yield from _urls_as_programs(document, receiver)
                yield from _misplaced_secrets(document, receiver, secrets)
    if document.value.get("notice") is not None and findings.fit("notice"):
        yield from _misplaced_secrets(document, WrittenReceiver(("notice",), document.value["notice"]), secrets)


def _receivers(path: Path, given: Any) -> List[WrittenReceiver]:
    """Return the receivers written at ``path``."""
    if isinstance(given, str):
        return [WrittenReceiver(path, {"url": given}, is_short=True)]
    if isinstance(given, dict):
        return [WrittenReceiver(path, given)]
    items = given or ()
    if items and all(isinstance(each, str) for each in items):
        return [WrittenReceiver(path, {"command": items}, is_short=True)]
    return [WrittenReceiver((*path, index), each) for index, each in enumerate(items) if isinstance(each, dict)]


def _mixture(document: Document, path: Path, given: Any) -> Iterator[Problem]:
    """Refuse a list that contains both words and receivers."""
    if isinstance(given, list) and len({isinstance(each, str) for each in given}) > 1:
        expected, hint = "the words of one command, or a list of receivers", "write the command as {command: […]}"
        yield document.problem(path, expected, "both in one list", hint)


def _ways(document: Document, receiver: WrittenReceiver) -> Iterator[Problem]:
    """Refuse a receiver with both a command and a URL or with neither, and headers without a URL."""
    given = [key for key in ("url", "command") if key in receiver.values]
    if len(given) != 1:
        yield document.problem(receiver.path, "either url or command", "both" if given else "neither")
    elif "headers" in receiver.values and given == ["command"]:
        yield document.problem((*receiver.path, "headers"), "the key url in the same receiver", "command", at_key=True)


def _urls_as_programs(document: Document, receiver: WrittenReceiver) -> Iterator[Problem]:
    """Refuse a URL instead of a program: a list of texts is a command."""
    path, program = next(receiver.words, (receiver.path, ""))
    if program.startswith(("http://", "https://")):
        yield document.problem(path, "a program", "a URL", "write it without the brackets, or as {url: …}")


def _misplaced_secrets(document: Document, receiver: WrittenReceiver, secrets: Collection[str]) -> Iterator[Problem]:
    """Refuse secrets among the words of a command, and names in a URL or header that are not secrets."""
    for path, word in receiver.words:
        for name in set(names_in(word)).intersection(secrets):
            hint = f"use the command's environment variable ${name}: other users can read arguments"
            yield document.problem(path, "a word without a secret", f"{{{name}}}", hint)
    for path, text in receiver.templates:
        for name in sorted(set(names_in(text)).difference(secrets)):
            hint = f"list it: secrets: [{', '.join([*secrets, name])}]"
            yield document.problem(path, "only names of listed secrets in braces", f"{{{name}}}", hint)
