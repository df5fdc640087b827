"""The models: each module registers those of one kind."""

from tests.differential.models import (  # noqa: F401
    constraints,
    decays,
    first_values,
    gradients,
    groups,
    layers,
    lookups,
    loops,
    optimizers,
    rates,
    reads,
    scaling,
    states,
    structures,
)
