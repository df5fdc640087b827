"""The entry point of the verbs on a host: ``python -m launch.agent VERB``; see ``launch.agent.wire.verb_table``."""

import json
import os
import sys
from dataclasses import is_dataclass
from typing import Any, Callable, Dict, Type, TypeVar

from cluster.protocol.typed_json import Malformed, from_values, to_values
from launch.agent.errors import AgentError
from launch.agent.linux.open_files import readable
from launch.agent.wire.verb_table import VERBS, Verb

T = TypeVar("T")
SILENT_S = 60.0  # a launcher that stops in the middle of a file has ended


class NotUnderstood(AgentError):
    """The error that another version of the launcher sent the request. Its text is the answer to the request."""


def read_request(kind: Type[T]) -> T:
    """Return the request on stdin.

    Raises:
      NotUnderstood: a field is missing, or has another type.
    """
    try:
        return from_values(kind, read_values())
    except Malformed as error:
        advice = "start again with the launcher version that sent this code"
        raise NotUnderstood(f"expected a request of this version, found {error}; {advice}") from None


def read_values() -> Dict[str, Any]:
    """Read one JSON line from stdin, and return its object; exit if the launcher has ended.

    The function does not read beyond the line, because the next bytes may be for another reader.
    """
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            sys.exit(0)
        line += byte
    values: Dict[str, Any] = json.loads(line.decode())
    return values


def read_some(size: int) -> bytes:
    """Return at most ``size`` bytes from the launcher; b"" if it has ended, or sends nothing for ``SILENT_S``."""
    return os.read(0, size) if readable(0, SILENT_S) else b""


def tell(values: Dict[str, Any]) -> None:
    """Write one JSON line to stdout."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def launcher_goes(seconds: float) -> bool:
    """Wait at most ``seconds`` for the end of the launcher; return whether it has closed this process's stdin.

    The launcher sends nothing more after its request.
    """
    return readable(0, seconds) and not os.read(0, 1)


def run(name: str) -> None:
    """Run a verb on this host, and send its answer."""
    try:
        _run(VERBS[name])
    except NotUnderstood as error:
        tell({"error": str(error)})
    except BrokenPipeError:  # the launcher has ended
        os._exit(0)


def _run(verb: Verb) -> None:
    function = verb.function()
    ends = {"tell": tell, "read_values": read_values, "read_some": read_some, "launcher_goes": launcher_goes}
    request = [read_request(request_of(function))] if verb.has_request else []
    answer = function(*request, *(ends[each] for each in verb.ends))
    if not verb.ends:
        tell(to_values(answer) if is_dataclass(answer) else answer)


def request_of(function: Callable[..., Any]) -> Type[Any]:
    """Return the dataclass of a verb's request: the type of its function's first argument."""
    kind: Type[Any] = next(iter(function.__annotations__.values()))
    return kind


if __name__ == "__main__":
    run(sys.argv[1])
