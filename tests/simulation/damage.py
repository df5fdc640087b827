"""Damage to a record, a JSON file that an agent has written: what disks, crashes and people make of it."""

import json
from random import Random
from typing import Any, Callable, Dict, Iterator, List, Tuple

OTHERS: Tuple[Any, ...] = (None, True, -1, 0.5, "x", [], [1], {}, {"x": None})  # values of any type


def _changed(data: bytes, older: bytes, random: Random) -> bytes:
    """One byte is another one, so that the text is no record of these fields any more."""
    at, byte = random.randrange(len(data)), random.randrange(256)
    found = data[:at] + bytes([byte]) + data[at + 1 :]
    return found if _shape(found) != _shape(data) else data[:at] + b"\xff" + data[at + 1 :]


def _shape(data: bytes) -> Any:
    """Return what can be known of a text as a record: its keys, and the types of their values."""
    try:
        return [(where, type(value)) for where, value in _values(json.loads(data.decode()))]
    except ValueError:
        return None


def _values(value: Any, where: Tuple[Any, ...] = ()) -> Iterator[Tuple[Tuple[Any, ...], Any]]:
    """Yield every value inside a value, with its place."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    yield where, value
    for key, each in inside:
        yield from _values(each, (*where, key))


def _retyped(data: bytes, older: bytes, random: Random) -> bytes:
    """A field has a value of another type."""
    record = json.loads(data.decode())
    places = [where for where, _ in _values(record) if where]
    if not places:
        return b"[]"
    *above, key = random.choice(places)
    place = record
    for each in above:
        place = place[each]
    place[key] = random.choice([each for each in OTHERS if type(each) is not type(place[key])])
    return json.dumps(record).encode()


def _with_unknown(data: bytes, older: bytes, random: Random) -> bytes:
    """An object has a field that nobody knows."""
    record = json.loads(data.decode())
    objects = [each for _, each in _values(record) if isinstance(each, dict)]
    random.choice(objects)["of tomorrow"] = random.choice(OTHERS)
    return json.dumps(record).encode()


def places(record: Any) -> List[Tuple[Any, ...]]:
    """Return the place of each field of a record; of the items of a list, those of the first alone."""
    return [where for where, _ in _values(record) if where and isinstance(where[-1], str) and not {1, 2, 3} & {*where}]


def without(record: Any, where: Tuple[Any, ...]) -> Any:
    """Return a copy of a record without one field."""
    found = json.loads(json.dumps(record))
    place = found
    for each in where[:-1]:
        place = place[each]
    del place[where[-1]]
    return found


def _lacking(data: bytes, older: bytes, random: Random) -> bytes:
    """A field is missing, as in what an older version writes."""
    record = json.loads(data.decode())
    found = places(record)
    return json.dumps(without(record, random.choice(found)) if found else record).encode()


MANNERS: Dict[str, Callable[[bytes, bytes, Random], bytes]] = {
    "changed": _changed,
    "cut short": lambda data, older, random: data[: random.randrange(len(data))],
    "empty": lambda data, older, random: b"",
    "of yesterday": lambda data, older, random: older,
    "no JSON": lambda data, older, random: random.choice([b"not JSON", b"\0" * len(data), b"NaN", b"[", b"\xff\xfe"]),
    "no object": lambda data, older, random: json.dumps(random.choice(OTHERS[:7])).encode(),
    "retyped": _retyped,
    "with an unknown field": _with_unknown,
    "without a field": _lacking,
}


def damaged(data: bytes, older: bytes, manner: str, random: Random) -> bytes:
    """Return what is left of a record that is whole. An earlier damage may have left no record: then this one."""
    return MANNERS[manner](data, older, random) if isinstance(_record(data), dict) else data


def _record(data: bytes) -> Any:
    try:
        return json.loads(data.decode())
    except ValueError:
        return None
