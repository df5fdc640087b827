"""Each field of a status has its meaning beside it, and the reference has each under its path."""

from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Tuple

import pytest

from launch.status.meanings import meanings, means, means_each, means_parts
from launch.status.run import RunStatus


@dataclass
class Wheel:
    size: int = field(default=0, metadata=means("its diameter"))


@dataclass
class Cart:
    wheels: List[Wheel] = field(default_factory=list, metadata=means("what it rolls on"))
    spare: Optional[Wheel] = field(default=None, metadata=means("one more; null without"))
    owners: List[str] = field(default_factory=list, metadata=means("whose it is"))
    loads: Dict[str, int] = field(default_factory=dict, metadata=means("by name, how heavy"))


def test_fields_are_told_in_their_order_with_those_of_their_parts_below_them() -> None:
    assert list(meanings(Cart).items()) == [
        ("wheels[]", "what it rolls on"),
        ("wheels[].size", "its diameter"),
        ("spare", "one more; null without"),
        ("spare.size", "its diameter"),
        ("owners", "whose it is"),
        ("loads", "by name, how heavy"),
    ]


@dataclass
class Yard:
    carts: Optional[List[Cart]] = field(default=None, metadata=means_parts())
    broken: Tuple[Wheel, ...] = field(default=(), metadata=means_parts("broken: "))
    rented: Mapping[str, Wheel] = field(default_factory=dict, metadata=means("by name"))
    gates: List[str] = field(default_factory=list, metadata=means_each("a way in"))


def test_parts_stand_for_a_field_that_has_none_of_its_own_and_mappings_have_no_parts() -> None:
    found = meanings(Yard)
    assert list(found) == [*(f"carts[].{path}" for path in meanings(Cart)), "broken[].size", "rented", "gates[]"]
    assert (found["carts[].owners"], found["broken[].size"]) == ("whose it is", "broken: its diameter")


def test_a_field_without_a_meaning_is_an_error() -> None:
    @dataclass
    class Nameless:
        size: int = 0

    with pytest.raises(KeyError):
        meanings(Nameless)


def test_a_status_has_the_meaning_of_what_is_deep_in_it() -> None:
    told = meanings(RunStatus)
    assert (
        told["incidents[].followed[].at_s"]
        == told["incidents[].at_s"]
        == "Seconds from the start of the run to the event."
    )
    assert {"formation.without", "tasks[].straggler", "replicas"} <= set(told)
