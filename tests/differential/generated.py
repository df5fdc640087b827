"""Trains models that hypothesis makes up, one for each seed: python -m tests.differential.generated --seeds 500

Each is tried in one way, which its seed chooses, too. Exit code 1 if any differs; `--seed N` is a single one again.
"""

import sys
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.differential import recipes as of
from tests.differential.__main__ import common, report
from tests.differential.carrying_out import ready
from tests.differential.recipes import Layer, Recipe, composed
from tests.differential.verdict import DIFFERENT
from tests.differential.ways import AXES, Case, Way

_DRAWS = 12  # of a seed: hypothesis begins with simple ones, so the one with the most to say is taken


def layers() -> Any:
    """How one layer may be."""
    return st.builds(
        Layer,
        kind=st.sampled_from(of.KINDS),
        shared=st.integers(0, 2),
        regularizer=st.sampled_from(of.REGULARIZERS),
        constraint=st.sampled_from(of.CONSTRAINTS),
        read=st.sampled_from(of.READS),
        resource=st.booleans(),
        bias=st.booleans(),
    )


def recipes() -> Any:
    """How a model may be."""
    return st.builds(
        Recipe,
        layers=st.lists(layers(), min_size=1, max_size=4).map(tuple),
        optimizer=st.sampled_from(sorted(of.OPTIMIZERS)),
        decay=st.sampled_from(of.DECAYS),
        average=st.sampled_from(of.AVERAGES),
        annealed=st.booleans(),
    ).map(_trainable)


def _trainable(recipe: Recipe) -> Recipe:
    """The same without what one process refuses: sparse gradients under a constraint or for optimizers with norms."""
    dense = recipe.optimizer in ("lars", "bert", "adamw", "wrapper", "each", "together")
    kinds = {"rows": "dense", "whole_table": "scaled"} if dense else {}
    changed = [
        Layer(**{**vars(layer), "kind": kinds.get(layer.kind, layer.kind), **_unconstrained(layer)})
        for layer in recipe.layers
    ]
    return Recipe(**{**vars(recipe), "layers": tuple(changed)})


def _unconstrained(layer: Layer) -> Any:
    return {"constraint": "none"} if layer.kind in ("rows", "whole_table") else {}


def drawn(number: int) -> Tuple[Recipe, Way]:
    """The model and the way of a seed."""
    found: List[Tuple[Recipe, Way]] = []

    @seed(number)
    @settings(max_examples=_DRAWS, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(recipe=recipes(), values=st.tuples(*map(st.sampled_from, AXES.values())))
    def note(recipe: Recipe, values: Any) -> None:
        found.append((recipe, Way(*values)))

    note()
    return max(found, key=lambda each: len(each[0].as_json()))


def cases(numbers: Sequence[int], allowed: Mapping[str, Sequence[Any]]) -> List[Case]:
    """The cases of those seeds, with one of the allowed values of an axis where a seed has another."""
    found = []
    for number in numbers:
        recipe, way = drawn(number)
        values = way.values()
        for axis, choices in allowed.items():
            if values[axis] not in choices:
                values[axis] = choices[number % len(choices)]
        if recipe.average != "none" and values["sync"] == "backup":
            values["sync"] = "plain"  # an average moves in the chief's own steps, of which it may miss one there
        found.append(Case(composed(recipe.as_json(), f"seed {number}"), Way(**values)))
    return found


def _allowed(options: Any) -> Mapping[str, Sequence[Any]]:
    asked = {axis: getattr(options, axis) or [str(value) for value in values] for axis, values in AXES.items()}
    asked["runtime"] = ready(asked["runtime"])
    return {axis: [value for value in values if str(value) in asked[axis]] for axis, values in AXES.items()}


def main(argv: Optional[List[str]] = None) -> int:
    """Returns 1 if any model differs, else 0."""
    parser = common(__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="how many seeds (500)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--seed", type=int, help="only this one")
    options = parser.parse_args(argv)
    numbers = range(options.first, options.first + options.seeds) if options.seed is None else [options.seed]
    results = report(cases(numbers, _allowed(options)), options, rows=False)
    return int(any(result.verdict.kind == DIFFERENT for result in results))


if __name__ == "__main__":
    sys.exit(main())
