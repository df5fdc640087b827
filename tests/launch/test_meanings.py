"""Each field of a status has its meaning in the docstring, and the reference has each under its path."""

from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Tuple

import pytest

from launch.status.run import RunStatus
from tests.reference import meanings


@dataclass
class Wheel:
    """A wheel.

    Attributes:
      size: its diameter
    """

    size: int = 0


@dataclass
class Cart:
    """A cart.

    Attributes:
      wheels[]: what it rolls on
      spare: one more;
        null without
      owners: whose it is
      loads: by name, how heavy

    Raises:
      ValueError: never.
    """

    wheels: List[Wheel] = field(default_factory=list)
    spare: Optional[Wheel] = None
    owners: List[str] = field(default_factory=list)
    loads: Dict[str, int] = field(default_factory=dict)


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
    """A yard.

    Attributes:
      broken.*: broken:
      rented: by name
      gates[]: a way in
    """

    carts: Optional[List[Cart]] = None
    broken: Tuple[Wheel, ...] = ()
    rented: Mapping[str, Wheel] = field(default_factory=dict)
    gates: List[str] = field(default_factory=list)


@dataclass
class Depot(Yard):
    """A yard for more than carts.

    Attributes:
      rented: for a day, by name
    """

    height: int = 0


def test_parts_stand_for_a_field_that_has_none_of_its_own_and_mappings_have_no_parts() -> None:
    found = meanings(Yard)
    assert list(found) == [*(f"carts[].{path}" for path in meanings(Cart)), "broken[].size", "rented", "gates[]"]
    assert (found["carts[].owners"], found["broken[].size"]) == ("whose it is", "broken: its diameter")


def test_a_field_without_a_meaning_is_an_error() -> None:
    with pytest.raises(KeyError, match="height"):
        meanings(Depot)


def test_a_status_has_the_meaning_of_what_is_deep_in_it() -> None:
    told = meanings(RunStatus)
    assert (
        told["incidents[].followed[].at_s"]
        == told["incidents[].at_s"]
        == "Seconds from the start of the run to the event."
    )
    assert {"formation.without", "tasks[].straggler", "replicas"} <= set(told)
