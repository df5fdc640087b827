"""The shapes of the hosts' answers to each verb, and the check of a value against a shape.

The shapes have only the parts of the answers that the launcher reads. The check covers exactly these parts.

str, int, object            a value of that type; ``object``: any value
None                        null
(A, B)                      one of the shapes
[A]                         a list of items of that shape
{"key": A, "more?": B}      an object with the first key and optionally the second; other keys are ignored
{str: A}                    an object whose values all have that shape
"""

from typing import Any, Dict, Iterable, Mapping, Optional

Shape = Any


def fault(value: Any, shape: Shape, at: str = "") -> Optional[str]:
    """Return the path at which a value differs from a shape, such as ``.tasks[].role``; None if the value fits."""
    if shape is None:
        return at if value is not None else None
    if isinstance(shape, tuple):
        faults = [fault(value, each, at) for each in shape]
        return None if None in faults else max((each or "" for each in faults), key=len)
    if isinstance(shape, list):
        return _first(value, shape[0], f"{at}[]") if isinstance(value, list) else at
    if isinstance(shape, dict):
        return _fault_of_object(value, shape, at) if isinstance(value, dict) else at
    return None if isinstance(value, shape) else at


def _first(values: Iterable[Any], shape: Shape, at: str) -> Optional[str]:
    faults = (fault(each, shape, at) for each in values)
    return next((each for each in faults if each is not None), None)


def _fault_of_object(value: Dict[str, Any], shape: Shape, at: str) -> Optional[str]:
    faults = (_fault_at(value, key, inner, at) for key, inner in shape.items())
    return next((each for each in faults if each is not None), None)


def _fault_at(value: Dict[str, Any], key: Any, inner: Shape, at: str) -> Optional[str]:
    if key is str:
        return _first(value.values(), inner, f"{at}.*")
    name = key.rstrip("?")
    if name in value:
        return fault(value[name], inner, f"{at}.{name}")
    return None if key.endswith("?") else f"{at}.{name}"


NUMBER = (int, float)
TEXT = (str, None)

_KNOWN = {"run": str, "lives": bool, "generation": int, "lead": TEXT, "hosts?": [str]}
_HELD: Shape = {
    "run": TEXT, "step": int, "bytes": NUMBER, "generation?": int, "folder?": str, "history?": dict,
    "record?": (None, dict),
}  # fmt: skip
_TENSOR: Shape = {"dtype": str, "shape": (None, [(None, int)])}

TIME: Shape = {"time": NUMBER}
KNOWS: Shape = {
    "highest": int,
    "taken": bool,
    "boot_obstacle?": TEXT,
}  # also in the answer to ``find`` before a run starts

# For a verb that is not listed, the launcher only needs an answer, not its content.
OF_VERBS: Mapping[str, Shape] = {
    "status": ({"status": (None, dict), "run?": None, "lives?": None}, {"status": (None, dict), **_KNOWN}),
    "find": ({"run": None}, _KNOWN),
    "held": {"held": [_HELD]},
    "start": {"ended?": [str]},
    "attach": ({"run": dict, "tasks": {str: dict}}, {"run?": None}),  # the rest is read as a status
    "logs": {"time": NUMBER, "task": str, "line": str, "attempt?": int},
    "flight": {"time": NUMBER, "flights": [dict]},  # read as ``HostFlights``
    "build": {"want?": [str], "stage?": str, "done?": str},
    "export": (
        {"stage": str},
        {"file": str, "bytes": int},
        {"data": str},
        {
            "done": {"inputs": {str: _TENSOR}, "outputs": {str: _TENSOR}, "tables": {str: int}, "version": str},
            "checkpoint": str,
        },
    ),
    "board": {"run": str, "port": int},
    "diagnose": (
        TIME,
        {"file": str, "text": str},
        {"file": str, "json": object},
        {"missing": str, "why": str},
        {"done": object, "run": None},
        {"done": object, "run": str, "lives?": bool, "generation?": int},
    ),
}
