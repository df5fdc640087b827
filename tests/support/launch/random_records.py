"""Dataclasses with random values, and JSON values of types that a field does not take."""

from dataclasses import MISSING, Field, fields, is_dataclass
from random import Random
from typing import Any, Dict, Iterator, Tuple, Union, get_type_hints

TEXTS = ("", "worker:0", "~/w", 'a "b" {c}', "\u00fcber \U0001f600", "\n\x00")
OTHERS: Tuple[Any, ...] = ("text", 7, 0.5, True, None, [None], {"key": None})


def random_record(kind: Any, dice: Random) -> Any:
    """Return one in which every field has a random value of its type."""
    hints = get_type_hints(kind)
    return kind(**{each.name: random_value(hints[each.name], dice) for each in fields(kind)})


def random_value(hint: Any, dice: Random) -> Any:
    """Return a value of a type."""
    if is_dataclass(hint):
        return random_record(hint, dice)
    simple: Dict[Any, Any] = {
        str: dice.choice(TEXTS), int: dice.randrange(-5, 1 << 40), float: dice.choice([0.0, 1.5, 10, 1e300]),
        bool: dice.random() < 0.5, type(None): None,
    }  # fmt: skip
    if hint in simple:
        return simple[hint]
    origin, arguments = hint.__origin__, hint.__args__
    if origin is Union:
        return random_value(dice.choice(arguments), dice)
    if origin in (list, tuple):
        return origin(random_value(arguments[0], dice) for _ in range(dice.randrange(4)))
    return {f"{text}{index}": random_value(arguments[1], dice) for index, text in enumerate(dice.sample(TEXTS, 2))}


def wrong_values(hint: Any) -> Iterator[Any]:
    """Yield a JSON value of each kind that a type does not take."""
    for value in OTHERS:
        if not _takes(hint, value):
            yield value


def _takes(hint: Any, value: Any) -> bool:
    if hint in (str, bool, type(None)):
        return isinstance(value, hint)
    if hint in (int, float):
        return not isinstance(value, bool) and isinstance(value, (int, hint))
    if is_dataclass(hint):  # where every field has a default, an object without any is one
        return isinstance(value, dict) and all(_has_default(each) for each in fields(hint))
    if hint.__origin__ is Union:
        return any(_takes(each, value) for each in hint.__args__)
    return False  # the lists and objects among the values hold a null, which no field takes


def _has_default(each: "Field[Any]") -> bool:
    factory: Any = each.default_factory
    return each.default is not MISSING or factory is not MISSING
