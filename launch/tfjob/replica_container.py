"""The container of a replica: its command, its environment and its resources, in the notation of Kubernetes.

In a container's command, arguments and environment, ``$(NAME)`` becomes the variable's value. A ``$(NAME)`` without
such a variable stays, so that ``sh -c "echo $(date)"`` works. ``$$`` becomes ``$``. Examples of quantities are ``500m``
processors or ``4Gi`` of memory.
"""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from shlex import quote
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from cluster.protocol.command_template import names_in
from cluster.protocol.settings import GIB, Limits
from launch.tfjob.manifest_reader import ManifestEntry
from launch.view.console import cut

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expanded(text: str, values: Mapping[str, str]) -> str:
    """Return ``text`` with its references replaced; references without a value in ``values`` do not change."""
    return _REFERENCE.sub(lambda found: "$" if found[1] is None else values.get(found[1], found[0]), text)


def references(text: str) -> List[str]:
    """Return the names in ``$(…)``."""
    return [found[1] for found in _REFERENCE.finditer(text) if found[1] is not None]


def escaped(text: str) -> str:
    """Return ``text`` escaped, so that Kubernetes expands it to exactly this text."""
    return re.sub(r"\$(?=[$(])", "$$", text)


_WRITTEN = re.compile(r"\+?([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})([a-zA-Z]{0,2}|[eE][-+]?[0-9]{1,2})")
_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def amount(text: str) -> Optional[Fraction]:
    """Return the value of a quantity such as ``4Gi``; None if ``text`` is not a quantity."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return None
    factor = _factor(found[2])
    return None if factor is None else Fraction(found[1]) * factor


def _factor(suffix: str) -> Optional[Fraction]:
    if suffix in _DECIMAL:
        return Fraction(1000) ** _DECIMAL[suffix]
    if suffix in _BINARY:
        return Fraction(1024) ** _BINARY[suffix]
    return Fraction(10) ** int(suffix[1:]) if suffix[1:].lstrip("+-").isdigit() else None


def binary(number: int) -> str:
    """Return a number of bytes as a quantity such as ``4Gi``, with the largest suffix that divides it."""
    for suffix, power in (("Gi", 3), ("Mi", 2), ("Ki", 1)):
        if number and number % 1024**power == 0:
            return f"{number // 1024**power}{suffix}"
    return str(number)


CONTAINER = "tensorflow"
GPU = "nvidia.com/gpu"
PORT = "tfjob-port"
MOST_GPUS = 1024
SHOWN = 60  # characters of a command in a message
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SET_BY_LAUNCHER = re.compile(r"(?:TF_CONFIG|CUDA_VISIBLE_DEVICES)|LAUNCH_.*")


@dataclass
class ContainerVariables:
    """The variables of a container: values by name, and names whose values are not in the manifest.

    ``secrets`` has the entry of each variable from a Secret, by name; ``elsewhere`` has every name without a value.
    ``is_open``: whether the container has further variables, whose names are not in the manifest.
    """

    values: Dict[str, str] = field(default_factory=dict)
    secrets: Dict[str, ManifestEntry] = field(default_factory=dict)
    elsewhere: Set[str] = field(default_factory=set)
    is_open: bool = False

    def forget(self, name: str) -> None:
        """Remove a variable: of two variables with the same name, Kubernetes uses the last."""
        self.values.pop(name, None)
        self.secrets.pop(name, None)
        self.elsewhere.discard(name)


def find_container(replica: ManifestEntry) -> Optional[ManifestEntry]:
    """Return the container that the operator runs as the task."""
    containers = replica["template"]["spec"]["containers"]
    for container in containers.items("a list of containers"):
        if container["name"].value == CONTAINER:
            container["name"].take()
            _take_ports(container["ports"])
            return container
    containers.problem(f"a container named {CONTAINER}", "none", "the operator runs only this container as a task")
    return None


def _take_ports(entry: ManifestEntry) -> None:
    """Read the operator's own port, which the launcher's ports replace."""
    ports = entry.value
    if isinstance(ports, list) and all(isinstance(port, dict) and port.get("name") == PORT for port in ports):
        entry.take()


def read_environment(container: ManifestEntry) -> ContainerVariables:
    """Return the variables of a container, with references to earlier ones expanded."""
    environment = ContainerVariables(is_open=bool(container["envFrom"].value))
    for variable in container["env"].items("a list of variables"):
        _add_variable(variable, environment)
    return environment


def _add_variable(variable: ManifestEntry, environment: ContainerVariables) -> None:
    name = variable["name"].get(str, "the name of a variable")
    if name is None or not _NAME.fullmatch(name):
        variable["name"].problem("the name of a variable, of letters, digits and _")
        return
    if _SET_BY_LAUNCHER.fullmatch(name):
        hint = "remove the variable in a copy of the manifest"
        variable["name"].problem("a variable that the launcher does not set itself", name, hint)
    environment.forget(name)
    if variable["valueFrom"].value is None:
        environment.values[name] = _expanded(variable["value"], environment)
    else:
        environment.elsewhere.add(name)
        _add_source(variable, name, environment)


def _add_source(variable: ManifestEntry, name: str, environment: ContainerVariables) -> None:
    reference = variable["valueFrom"]["secretKeyRef"].value
    if isinstance(reference, dict):
        variable["valueFrom"].take()
        environment.secrets[name] = variable
        origin = f"key {reference.get('key')} of the Secret {reference.get('name')}"
        variable["valueFrom"].note(
            f"secrets: export {name} before `launch up`; the manifest takes its value from {origin}"
        )


def _expanded(entry: ManifestEntry, environment: ContainerVariables) -> str:
    text = entry.text()
    for name in references(text):
        is_unknown = environment.is_open and name not in environment.values
        if is_unknown or name in environment.elsewhere or name == "TF_CONFIG":
            hint = f"let the program read {name} from its environment"
            entry.problem("only references to variables with values in the manifest", f"$({name})", hint)
    return expanded(text, environment.values)


def read_command(
    container: ManifestEntry, environment: ContainerVariables, entrypoint: Optional[Sequence[str]]
) -> Tuple[str, ...]:
    """Return the words of the container's command, which first changes into the container's working folder.

    Args:
      entrypoint: the words of the image's entry point, used if the container has no ``command``. It is () for an
        image without an entry point, where ``args`` are the command, and None if it is unknown.
    """
    command, args = _words(container["command"], environment), _words(container["args"], environment)
    words = [*(command or entrypoint or ()), *args]
    if not words or (not command and entrypoint is None):
        _refuse_unknown(container, args)
    return (*_change_folder(container["workingDir"]), *words)


def _refuse_unknown(container: ManifestEntry, args: Sequence[str]) -> None:
    """Report that the command of a container begins, or is, in its image alone."""
    found, hint = "only the image's own", 'give the command of the image: --entrypoint "python /opt/train.py"'
    if args:
        found = "only args, for the entry point of the image"
        words = cut(" ".join(map(quote, args)), SHOWN)
        hint += f', or --entrypoint "" if it has none, so that the command is `{words}`'
    container["command"].problem("a command", found, hint)


def _change_folder(entry: ManifestEntry) -> Sequence[str]:
    """Return the words before a command that begins in another folder than the task's own."""
    folder = entry.get(str, "a folder")
    if not folder:
        return ()
    names = names_in(folder)
    if not folder.startswith("/") or names:
        entry.problem("an absolute path without names in braces")
    entry.note("each task starts in this folder: make it on the hosts")
    return ("sh", "-c", 'cd "$0" && exec "$@"', folder)


def _words(entry: ManifestEntry, environment: ContainerVariables) -> List[str]:
    words = []
    for written in entry.items("a list of words"):
        words.append(_expanded(written, environment))
        for name in names_in(words[-1]):
            hint = "put the command into a script"
            expected = "no name in braces, because the key command replaces such names by values"
            written.problem(expected, f"{{{name}}}", hint)
    return words


def read_gpus(container: ManifestEntry) -> int:
    """Return the number of GPUs of a container."""
    entry = container["resources"]["limits"][GPU]
    written = _quantity(entry, "a number of GPUs")
    if written is None:
        return 0
    if written.denominator != 1 or written > MOST_GPUS:
        entry.problem(f"a number of GPUs from 0 to {MOST_GPUS}")
    return int(written)


def read_limits(container: ManifestEntry) -> Limits:
    """Return the limits of memory and processors of a container."""
    limits = container["resources"]["limits"]
    limits.mapping("a mapping")
    memory = _quantity(limits["memory"], "an amount of memory such as 4Gi")
    processors = _quantity(limits["cpu"], "a number of processors")
    if processors is not None and processors.denominator != 1:
        limits["cpu"].note("not carried over: limits.processors must be a whole number")
        processors = None
    return Limits(
        memory_gib=float(memory / GIB) if memory else None,
        processors=int(processors) if processors else None,
    )


def _quantity(entry: ManifestEntry, expected: str) -> Optional[Fraction]:
    if entry.take() is None:
        return None
    found = amount(entry.text())
    if found is None:
        entry.problem(expected)
    return found
