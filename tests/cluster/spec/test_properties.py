"""Whatever a hosts file contains, it is read or refused with problems, and nothing else happens."""

import json
from pathlib import Path
from typing import Any, Dict

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.spec import Spec, SpecError, load
from cluster.spec.host_names import hosts
from cluster.spec.schema import keys

# The same examples in every run; a claim that only some runs test would fail by chance.
_QUICK = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
_SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 70000) | st.floats(0, 9) | st.sampled_from(["", "a", "g[1-2]", "all"])
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["host", "gpus", "count", "x"]), inner),
    max_leaves=6,
)
_KEYS = st.sampled_from([key for key in keys() if not key.startswith("entry.")] + ["unknown", "train.unknown"])


def _document(changes: Dict[str, Any]) -> Dict[str, Any]:
    document: Dict[str, Any] = {"job": "digits", "cluster": {"ps": ["a"], "worker": ["b", {"host": "c", "gpus": 2}]}}
    for key, value in changes.items():
        place = document
        *sections, last = key.split(".")
        for section in sections:
            place[section] = place[section] if isinstance(place.get(section), dict) else {}
            place = place[section]
        place[last] = value
    return document


@_QUICK
@given(st.dictionaries(_KEYS, _VALUES, max_size=4))
def test_any_document_becomes_a_spec_or_a_list_of_problems(tmp_path: Path, changes: Dict[str, Any]) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text(json.dumps(_document(changes)))
    try:
        spec = load(path)
    except SpecError as error:
        assert error.problems
        assert all(problem.expected and problem.found and problem.line == 1 for problem in error.problems)
    else:
        _check_what_every_spec_promises(spec)


def _check_what_every_spec_promises(spec: Spec) -> None:
    assert len({task.address for task in spec.tasks}) == len(spec.tasks)
    assert (spec.job is None) != (spec.command is None)
    assert spec.chief in spec.tasks
    given_gpus = [(task.host, gpu) for task in spec.tasks if isinstance(task.gpus, tuple) for gpu in task.gpus]
    assert len(set(given_gpus)) == len(given_gpus)


_PARTS = st.lists(st.integers(0, 30), min_size=1, max_size=5, unique=True)


@_QUICK
@given(_PARTS, _PARTS, st.integers(1, 4))
def test_a_range_names_every_combination_once_in_ascending_order(racks: Any, nodes: Any, width: int) -> None:
    def padded(numbers: Any) -> str:
        return ",".join(f"{number:0{width}}" for number in numbers)

    named = hosts(f"r[{padded(racks)}]n[{padded(nodes)}].example")
    wanted = [f"r{rack:0{width}}n{node:0{width}}.example" for rack in sorted(racks) for node in sorted(nodes)]
    assert sorted(named) == sorted(wanted)
    assert width < 2 or list(named) == wanted
