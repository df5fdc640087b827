"""What ``launch status --json`` prints of a run stays as it is, field by field and in its order."""

import json
from dataclasses import replace
from typing import Any, Dict

import pytest

from cluster.protocol.typed_json import to_values
from tests.launch.status.recorded import ended, printed, running
from tests.support.agent.histories import Replay

RUNS = {"running": running(), "failed": ended()}
OF_LEAD = ("replicas", "started", "ended", "updated")  # a supervisor does not know these


def as_the_lead_tells(run: Replay, of_lead: Dict[str, Any]) -> Dict[str, Any]:
    return to_values(replace(run.run.status(), **of_lead))


@pytest.mark.parametrize("name", RUNS)
def test_a_status_is_printed_as_it_was(name: str) -> None:
    expected = printed(name)
    of_lead = {key: expected[key] for key in OF_LEAD}
    assert json.dumps(as_the_lead_tells(RUNS[name], of_lead), indent=1) == json.dumps(expected, indent=1)
