"""The shapes of the hosts' answers, verb by verb: only what the launcher reads of the answers."""

from typing import Mapping

from launch.hosts.shape import Shape

NUMBER = (int, float)
TEXT = (str, None)

_KNOWN = {"run": str, "lives": bool, "generation": int, "lead": TEXT, "hosts?": [str]}
_HELD: Shape = {"run": TEXT, "step": int, "bytes": NUMBER, "generation?": int, "folder?": str}
_TENSOR: Shape = {"dtype": str, "shape": (None, [(None, int)])}

TIME: Shape = {"time": NUMBER}
KNOWS: Shape = {
    "highest": int,
    "taken": bool,
    "boot_obstacle?": TEXT,
}  # besides, of what ``find`` answers before a run starts

# Of a verb that is not here the launcher reads no more than that it answers.
OF_VERBS: Mapping[str, Shape] = {
    "status": ({"status": (None, dict), "run?": None, "lives?": None}, {"status": (None, dict), **_KNOWN}),
    "find": ({"run": None}, _KNOWN),
    "held": {"held": [_HELD]},
    "start": {"ended?": [str]},
    "attach": ({"run": dict, "tasks": {str: dict}}, {"run?": None}),  # the rest is read as a status
    "logs": {"time": NUMBER, "task": str, "line": str},
    "flight": {"time": NUMBER, "flights": [dict]},  # read as ``HostFlights``
    "build": {"want?": [str], "stage?": str, "done?": str},
    "export": (
        {"stage": str},
        {"file": str, "bytes": int},
        {"data": str},
        {"done": {"inputs": {str: _TENSOR}, "outputs": {str: _TENSOR}, "tables": {str: int}}, "checkpoint": str},
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
