"""What hosts may have told, for tests."""

from dataclasses import replace
from typing import Any, Dict

from launch.agent.text import Redaction
from launch.agent.wire.host_facts import Clock
from launch.diagnosis.collect import HostReport

RUN = "r-20261120-155902"


def process(**changes: Any) -> Dict[str, Any]:
    """One of ``live.json``."""
    return {"pid": 42, "task": "worker:0", "state": "S", "waits_in": "poll", "swapped_bytes": 0, **changes}


def status(host: str, **changes: Any) -> Dict[str, Any]:
    """Of a run of one task on this host."""
    task = {"role": "worker", "index": 0, "host": host, "state": "running", "cause": None}
    whole = {"run": RUN, "state": "running", "global_step": 7, "steps": 9, "checkpoint_step": 5, "cause": None}
    return {**whole, "tasks": [task], **changes}


def disk(**changes: Any) -> Dict[str, Any]:
    """One of ``disks.json``, with room."""
    room = {"bytes": 10**11, "free_bytes": 9 * 10**10, "inodes": 100, "free_inodes": 90}
    return {"is_there": True, "writable": True, **room, **changes}


def told(host: str, **files: Any) -> HostReport:
    """A host where nothing is wrong, with files of the test's own: ``live`` is ``live.json``."""
    right = {
        "live": {"agent": 41, "processes": [process()]}, "disks": {"/w": disk()}, "kernel": [],
        "machine": {"memory": {"MemTotal": 10, "MemAvailable": 9}, "cores": 2, "load": [1.0]},
        "connections": {"count": 3, "hanging": 0, "first": []}, "versions": versions(),
    }  # fmt: skip
    report = HostReport(host, seconds=1.0)
    for name, content in {**right, **files}.items():
        report.take({"file": f"{name}.json", "json": content}, Redaction())
    report.take({"done": True, "run": RUN}, Redaction())
    report.facts = replace(report.facts, clock=Clock(0.0, 0.1))
    return report


def versions(**changes: Any) -> Dict[str, Any]:
    """``versions.json``"""
    packages = {"tensorflow": "1.15.0"}
    python = {"version": "3.7.9", "path": "/py"}
    return {"environment_ready": True, "python": python, "packages": packages, "code": {"job": "1" * 16}, **changes}
