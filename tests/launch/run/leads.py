"""Conversations with a lead, without one: what it says is written before."""

import json
from typing import Any, Callable, List, Mapping, Union

from cluster.protocol.typed_json import to_values
from launch.status.run import RunStatus
from launch.status.task import name_of
from tests.support.launch.fakes import FakeChannel
from tests.support.launch.statuses import status, task

READY = b'{"missing": []}\n'
Said = Union[bytes, Callable[[], bytes]]


def change(status: RunStatus) -> bytes:
    """A status as the lead's stream has it."""
    values = to_values(status)
    tasks = {name_of(each["role"], each["index"]): each for each in values.pop("tasks")}
    return line({"run": values, "tasks": tasks})


def answer(status: RunStatus, **found: Any) -> bytes:
    """A status as a host answers ``status``."""
    return line({"status": to_values(status), **found})


def line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


END = line({"end": "succeeded"})
SUCCEEDED = status(task(state="succeeded"), state="succeeded")


class Lead(FakeChannel):
    """A conversation with the lead; a function in its script is called when its turn comes."""

    def __init__(self, *script: Said):
        super().__init__(READY, *script)

    def told(self) -> List[str]:
        """What the lead was told, after code and request, less the beats."""
        return [each["do"] for each in self._lines() if each["do"] != "beat"]

    def heard(self) -> List[Any]:
        """What its beats have said of its answers."""
        return [each["heard"] for each in self._lines() if each["do"] == "beat"]

    def _lines(self) -> List[Any]:
        return [json.loads(each.decode()) for each in self.sent.splitlines()[2:]]
