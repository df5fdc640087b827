"""Requests of a launcher of another version are refused in a sentence, by every verb that reads one."""

import json
from dataclasses import MISSING, fields
from typing import Any, Dict, List

import pytest

from cluster.protocol.settings import Keep
from cluster.protocol.typed_json import from_values, to_values
from launch.agent import __main__ as agent
from launch.agent.wire import typed_verbs, verb_requests
from launch.agent.wire.run_request import RunRequest, Wanted
from launch.agent.wire.verb_requests import (
    BuildRequest,
    DownRequest,
    DrainRequest,
    ExportRequest,
    FlightRequest,
    GraphAnswer,
    HandoverRequest,
    HeldRequest,
    LockText,
    LogsRequest,
    LookRequest,
    PruneRequest,
    RestartRequest,
    RunReference,
    RunsRequest,
    SweepRequest,
    WheelFile,
)
from launch.agent.wire.verb_table import VERBS
from tests.support.agent.requested import run_request

RUN = RunReference("r", "h", "~/w")
HANDOVER = HandoverRequest(RUN, None, Wanted("r-1", 5), 1, "h:1", "secret", 5, "nftables", ("h",))
REQUESTS: Dict[str, Any] = {
    "start": run_request(),
    "attach": RunReference("r", "h", "~/w", "r-1"),
    "status": RUN,
    "linked": RUN,
    "find": RUN,
    "look": LookRequest("r", "h", "~/w", None, "launch down"),
    "board": RUN,
    "restart": RestartRequest(RUN, ("worker:1",)),
    "drain": DrainRequest(RUN, ("ps:1",), back=True),
    "down": DownRequest(RUN, 1.0, "enough", (7,), for_good=True),
    "sweep": SweepRequest("h", "~/w", kill=False),
    "runs": RunsRequest("h", "~/w"),
    "prune": PruneRequest(("h",), "~/w", "r", Keep(runs=3), 1.0),
    "logs": LogsRequest(RUN, ("worker:0",), tail=2),
    "flight": FlightRequest(RUN, ("worker:0",), 9),
    "held": HeldRequest(RUN, None),
    "take": HANDOVER,
    "give": HANDOVER,
    "export": ExportRequest(run_request(), 5),
    "graph": run_request(),
    "build": BuildRequest("~/w", "e", {"*": LockText("all", "")}, (WheelFile("x.whl", "0" * 64, 9),)),
}


def answers(verb: str, values: Any, patch: pytest.MonkeyPatch) -> List[Dict[str, Any]]:
    """What a verb answers to a request of these values."""
    found: List[Dict[str, Any]] = []
    patch.setattr(agent, "read_values", lambda: values)
    patch.setattr(agent, "tell", found.append)
    agent.run(verb)
    return found


def _has_factory(each: Any) -> bool:
    return each.default_factory is not MISSING


@pytest.mark.parametrize("verb", REQUESTS)
def test_a_request_without_a_field_that_is_needed_is_refused_and_the_field_named(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = to_values(REQUESTS[verb])
    optional = {each.name for each in fields(REQUESTS[verb]) if each.default is not MISSING or _has_factory(each)}
    for name in set(values) - optional:
        (answer,) = answers(verb, {key: values[key] for key in values if key != name}, monkeypatch)
        assert answer["error"].startswith(f"expected a request of this version, found {name}: expected ")
        assert answer["error"].endswith(", found nothing; start again with the launcher version that sent this code")


@pytest.mark.parametrize("verb", REQUESTS)
def test_a_request_that_is_no_object_is_refused(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (answer,) = answers(verb, ["status"], monkeypatch)
    assert answer["error"].startswith("expected a request of this version, found ")


@pytest.mark.parametrize("verb", REQUESTS)
def test_a_request_is_on_the_host_what_the_launcher_has_sent(verb: str) -> None:
    request = REQUESTS[verb]
    assert from_values(type(request), json.loads(json.dumps(to_values(request)))) == request


def test_the_table_has_every_verb_with_its_request_and_a_function_that_is_there() -> None:
    assert {name: agent.request_of(verb.function()) for name, verb in VERBS.items() if verb.has_request} == {
        name: type(request) for name, request in REQUESTS.items()
    }
    assert {name for name, verb in VERBS.items() if not verb.has_request} == {"return", "check", "diagnose"}
    assert all(callable(verb.function()) for verb in VERBS.values())


def test_the_launcher_has_the_types_of_the_functions_on_the_host() -> None:
    typed = [each for each in vars(typed_verbs).values() if isinstance(each, typed_verbs.TypedVerb)]
    assert typed
    for each in typed:
        function = VERBS[each.name].function()
        assert (each.request, each.answer) == (agent.request_of(function), function.__annotations__["return"])


def test_every_kind_of_request_is_one_of_these() -> None:
    parts = {LockText, WheelFile, GraphAnswer}
    kinds = {each for each in vars(verb_requests).values() if getattr(each, "__module__", "") == verb_requests.__name__}
    assert {type(each) for each in REQUESTS.values()} == (kinds | {RunRequest}) - parts


def test_what_may_be_secret_is_in_no_text_of_a_request() -> None:
    build = BuildRequest("~/w", "e", {}, index_url="https://me:secret@example.org")
    assert "secret" not in f"{HANDOVER!r}{build!r}"
