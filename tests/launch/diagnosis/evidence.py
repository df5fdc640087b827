"""What hosts may have told, for tests."""

from typing import Any, Dict

from launch.diagnosis.collect import Evidence

RUN = "r-20261120-155902"


def process(**changes: Any) -> Dict[str, Any]:
    """One of ``live.json``."""
    return {"pid": 42, "task": "worker:0", "state": "S", "waits_in": "poll", "swapped_bytes": 0, **changes}


def status(host: str, **changes: Any) -> Dict[str, Any]:
    """Of a run of one task on this host."""
    task = {"role": "worker", "index": 0, "host": host, "state": "running", "cause": None}
    whole = {"run": RUN, "state": "running", "global_step": 7, "steps": 9, "checkpoint_step": 5, "cause": None}
    return {**whole, "tasks": [task], **changes}


def told(host: str, **files: Any) -> Evidence:
    """A host where nothing is wrong, with files of the test's own: ``live`` is ``live.json``."""
    disk = {"error": None, "free_bytes": 9e10, "bytes": 1e11, "inodes": 100, "free_inodes": 90, "writable": True}
    right = {
        "live": {"agent": 41, "processes": [process()]}, "disks": {"/w": disk}, "kernel": [],
        "machine": {"memory": {"MemTotal": 10, "MemAvailable": 9}, "cores": 2, "load": [1.0]},
        "connections": {"count": 3, "hanging": 0, "first": []},
        "versions": {"python": {"version": "3.7.9"}, "packages": {"tensorflow": "1.15.0"}, "code": {"job": "1" * 16}},
    }  # fmt: skip
    named = {f"{name}.json": content for name, content in {**right, **files}.items()}
    return Evidence(host, named, {}, {"offset_s": 0.0, "error_s": 0.1}, RUN, None, 1.0)
