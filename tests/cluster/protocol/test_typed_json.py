"""What travels arrives as it was, and what is not what it should be is named by its field."""

import json
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type, Union, get_type_hints

import pytest

from cluster.protocol.typed_json import Malformed, from_values, part_of, to_values
from launch.agent.state.plan_file import KeptPlan, KeptTask
from launch.agent.wire.run_request import LeadAddress, RunPlan, RunRequest, TaskPlan, TaskRequest, Wanted
from tests.support.launch.random_records import random_record, wrong_values

KINDS = (RunRequest, TaskRequest, LeadAddress, Wanted, RunPlan, TaskPlan, KeptPlan, KeptTask)
SEEDS = range(60)


@dataclass(frozen=True)
class Inner:
    size: int
    ratio: float = 0.5


@dataclass(frozen=True)
class Outer:
    inner: Inner
    several: Tuple[Inner, ...] = ()
    named: Mapping[str, Inner] = field(default_factory=dict)
    maybe: Optional[Inner] = None
    words: List[str] = field(default_factory=list)
    either: Union[str, Tuple[int, ...]] = ()
    switch: bool = False


def refusal(values: Any, kind: Type[Any] = Outer) -> str:
    with pytest.raises(Malformed) as caught:
        from_values(kind, values)
    return str(caught.value)


def test_every_request_arrives_as_it_was_sent() -> None:
    for seed in SEEDS:
        for kind in KINDS:
            sent = random_record(kind, Random(seed))
            assert from_values(kind, json.loads(json.dumps(to_values(sent)))) == sent


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_of_a_wrong_type_is_named_by_its_field(kind: Type[Any]) -> None:
    values, hints = to_values(random_record(kind, Random(1))), get_type_hints(kind)
    for each in fields(kind):
        wrong = list(wrong_values(hints[each.name]))
        assert wrong
        for value in wrong:
            text = refusal({**values, each.name: value}, kind)
            assert text.startswith(each.name) and text[len(each.name)] in ":.["
            assert ": expected " in text and ", found " in text


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_without_a_default_that_is_missing_is_named(kind: Type[Any]) -> None:
    for seed in range(20):
        values = to_values(random_record(kind, Random(seed)))
        for name in values:
            rest = {key: value for key, value in values.items() if key != name}
            try:
                found = from_values(kind, rest)
            except Malformed as error:
                assert str(error).startswith(f"{name}: expected ") and str(error).endswith(", found nothing")
            else:
                assert {**to_values(found), name: values[name]} == values


def test_a_field_that_nobody_knows_is_passed_over() -> None:
    assert from_values(Outer, {"inner": {"size": 1, "unknown": []}, "new": {}}) == Outer(Inner(1))


def test_fields_that_an_older_writer_left_out_have_their_defaults() -> None:
    needed: Dict[str, Any] = {
        "run": "r-1", "name": "r", "host": "a", "workdir": "~/w", "code": {}, "file": "r.yaml", "cluster": "{}",
        "tasks": [], "token": "t", "lead": {"host": "a"}, "lost_after_s": 10, "join_s": 20, "grace_s": 10,
    }  # fmt: skip
    found = from_values(RunRequest, needed)
    assert (found.stay_s, found.allow_public, found.peers, found.again) == (20.0, False, None, False)


def test_the_place_of_a_wrong_value_is_named_down_to_its_item() -> None:
    assert refusal({"inner": {}}) == "inner.size: expected a whole number, found nothing"
    deep = {"inner": {"size": 1}, "several": [{"size": 1}, {"size": "1"}]}
    assert refusal(deep) == "several[1].size: expected a whole number, found a text"
    assert refusal({"inner": {"size": 1}, "named": {"a": 3}}) == "named.a: expected an object, found a whole number"
    assert refusal({"inner": {"size": True}}) == "inner.size: expected a whole number, found true or false"
    assert refusal({"inner": {"size": 1}, "maybe": {"size": None}}) == "maybe.size: expected a whole number, found null"
    assert refusal({"inner": {"size": 1}, "words": "abc"}) == "words: expected a list, found a text"
    both = "either: expected a text or a list, each item a whole number, found a number"
    assert refusal({"inner": {"size": 1}, "either": 0.5}) == both
    assert refusal([1]) == "Outer: expected an object, found a list"


def test_the_error_of_a_wrong_value_does_not_show_it() -> None:
    assert "hunter2" not in refusal({"secrets": {"KEY": ["hunter2"]}}, RunRequest)


def test_token_and_secrets_are_in_no_text_of_a_request() -> None:
    sent = random_record(RunRequest, Random(3))
    request = from_values(RunRequest, {**to_values(sent), "token": "t0k3n", "secrets": {"KEY": "hunter2"}})
    assert "t0k3n" not in repr(request) and "hunter2" not in repr(request)


def test_a_record_is_made_of_the_parts_of_others_of_which_the_first_that_has_a_name_counts() -> None:
    given = LeadAddress("a", "a:1")
    assert part_of(LeadAddress, given, {"host": "b", "more": 1}) == given
    assert part_of(LeadAddress, {"address": "b:1"}, given, host="c") == LeadAddress("c", "b:1")
    with pytest.raises(TypeError, match="more"):
        part_of(LeadAddress, given, more=1)
