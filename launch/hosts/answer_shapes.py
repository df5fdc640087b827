"""The shapes of the hosts' answers, verb by verb: only what the launcher reads of the answers."""

from typing import Mapping

from launch.hosts.shape import Shape

NUMBER = (int, float)
TEXT = (str, None)
COUNT = (int, None)
MEASURE = (int, float, None)

_KNOWN = {"run": str, "lives": bool, "generation": int, "lead": TEXT, "hosts?": [str]}
_HELD: Shape = {"run": TEXT, "step": int, "bytes": NUMBER, "generation?": int, "folder?": str}

OPENED: Shape = {"ports": {str: (None, {"why": str, "run?": TEXT, "pid?": COUNT})}}
TIME: Shape = {"time": NUMBER}
_VERSION: Shape = {"version?": TEXT, "path?": str, "error?": str}
LOOK: Shape = {
    "environment_ready": object, "names": {str: (str, [str])}, "driver": TEXT, "lacking": TEXT,
    "unreached": [{"address": str, "host": str, "kind": str, "detail": str}], "unguarded": (None, [str]),
    "gpus": [{"booked": TEXT, "processes": [str]}], "given": {str: [int]}, "proxies": [str], "missing_programs": [str],
    "folders": {str: ({"error": str}, {"error": None, "free_bytes": NUMBER})},
    "run": (None, {"run": str, "pid": COUNT, "code": {str: str}}),
    "versions": {"python": ({"version": str, "path": str}, {"error": str}), str: (_VERSION, {str: str})},
}  # fmt: skip

KNOWS: Shape = {"highest": int, "taken": bool}  # besides, of what ``find`` answers before a run starts

# Pieces of a diagnosis, by file; others are kept as they come.
DIAGNOSED: Mapping[str, Shape] = {
    "live.json": {
        "agent": object,
        "processes": [{"task": TEXT, "pid": int, "state": str, "waits_in": TEXT, "swapped_bytes": NUMBER}],
    },
    "kernel.json": [{"kind": str, "time": NUMBER, "text": str}],
    "disks.json": {
        str: (
            {"error": str},
            {"error": None, "free_bytes": int, "bytes": int, "inodes": int, "free_inodes": int, "writable": object},
        )
    },
    "machine.json": {"memory": {str: NUMBER}, "cores": COUNT, "load": [NUMBER]},
    "connections.json": {"hanging": int, "count": int, "first": [{"remote": str, "state": str}]},
    "versions.json": {"python?": _VERSION, "packages?": {str: str}, "code?": (None, {str: str})},
    "status.json": (None, {"tasks": [dict]}, {"state?": None}),  # a host that does not lead has no state
    "report.json": {"words?": ([str], None)},
}

# Of a verb that is not here the launcher reads no more than that it answers.
OF_VERBS: Mapping[str, Shape] = {
    "status": ({"status": (None, dict), "run?": None, "lives?": None}, {"status": (None, dict), **_KNOWN}),
    "find": ({"run": None}, _KNOWN),
    "held": {"held": [_HELD]},
    "start": {"ended?": [str]},
    "attach": ({"run": dict, "tasks": {str: dict}}, {"run?": None}),  # the rest is read as a status
    "logs": {"time": NUMBER, "task": str, "line": str},
    "build": {"want?": [str], "stage?": str, "done?": str},
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
