"""The rules for ``container`` that the JSON Schema does not state."""

from typing import Any, Dict, Iterator

from cluster.errors import Problem
from cluster.protocol.images import is_file
from cluster.spec.document import Document

# Options with which the launcher would lose a task from sight.
TAKEN = ("-d", "--detach", "--name")


def container_rules(document: Document) -> Iterator[Problem]:
    """Yield a problem for an image of another runtime, a ``setup`` beside a container, and options that hide a task."""
    yield from _image(document)
    if document.value.get("setup") is not None:
        hint = "remove one of them: an environment is built with the hosts' Python, and tasks run with the image's"
        yield document.problem(("setup",), "no container beside it", "container", hint, at_key=True)
    for index, word in enumerate(document.value["container"].get("args", ())):
        option = word.partition("=")[0]
        if option in TAKEN:
            expected = f"an option other than {option}, with which the launcher loses sight of a task"
            yield document.problem(("container", "args", index), expected, f"'{word}'", "leave it out")


def _image(document: Document) -> Iterator[Problem]:
    """Refuse a name for apptainer, which would fetch it for every task, and a path for the other runtimes."""
    given: Dict[str, Any] = document.value["container"]
    image, runtime = given["image"], given.get("runtime")
    if runtime == "apptainer" and not is_file(image):
        hint = f"make the file first: `apptainer pull /path/on/the/hosts.sif docker://{image}`"
        yield document.problem(("container", "image"), "an absolute path, for apptainer", f"'{image}'", hint)
    elif runtime in ("podman", "docker") and is_file(image):
        expected = f"the name of an image, for {runtime}"
        yield document.problem(("container", "image"), expected, f"'{image}'", "use runtime: apptainer for a file")
