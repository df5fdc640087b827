"""What keeps a construction's training right, and how to take each out: then seeds must differ.

A mend that nobody misses is none. Each is taken out in a process of its own, by replacing a part of this project.
"""

import contextlib
from dataclasses import dataclass
from typing import Any, Callable, Dict, Tuple

from cluster.model import model_graph, model_state
from cluster.model.model_graph import ModelGraph
from cluster.model.shares import Parts
from cluster.sharing import keras_graphs
from cluster.sharing.graph_collections import Collections, ScopeCounts
from cluster.updates import counted_step, imported_update, incremental_apply
from cluster.updates.grouped import Grouped
from cluster.updates.passed_loss import PassedLoss
from cluster.variables.functions import Functions

Set = Callable[[Any, str, Any], None]


@dataclass(frozen=True)
class Mend:
    """One mend: the rows that it is for, and a function that takes it out by setting attributes."""

    rows: Tuple[str, ...]
    take_out: Callable[[Set], None]


def _nothing(*args: Any, **kwargs: Any) -> None:
    pass


def collections_of_all_copies(replace: Set) -> None:
    """Lets a copy of the model find what others have put into collections."""
    replace(Collections, "alone", lambda self: contextlib.nullcontext())
    replace(model_graph, "refuse_borrowed", _nothing)


def losses_of_all_calls(replace: Set) -> None:
    """Lets a layer that was made once keep the losses of other copies."""
    replace(keras_graphs, "losses_alone", lambda making: contextlib.nullcontext())
    replace(model_graph, "refuse_borrowed", _nothing)


def tensors_of_other_copies(replace: Set) -> None:
    """Lets the loss of a copy depend on tensors of another one."""
    replace(model_graph, "refuse_borrowed", _nothing)


def weights_before_the_optimizer(replace: Set) -> None:
    """Gives the optimizer a copy's part of the loss."""
    weigh = Parts.weigh

    def weighed(self: Parts, loss: Any, counts: Any = None) -> Any:
        mean, weight = weigh(self, loss, counts)
        return mean * (1.0 if weight is None else weight), None

    replace(Parts, "weigh", weighed)


def losses_of_any_kind(replace: Set) -> None:
    """Accepts whatever an optimizer passes on."""
    replace(PassedLoss, "_scales", lambda self, tensor: False)


def keys_of_nobody(replace: Set) -> None:
    """Accepts a key of optimizers that no variable has."""
    replace(Grouped, "_refuse_unmatched", _nothing)


def keys_as_they_are(replace: Set) -> None:
    """Takes no key that ends in a slash for the names beneath it."""
    replace(Grouped, "_refuse_unmatched", _nothing)
    prefix = Grouped.prefix

    def without_slashes(self: Grouped, name: str) -> str:
        found = prefix(self, name)
        return "" if found.endswith("/") else found

    replace(Grouped, "prefix", without_slashes)


def updates_by_a_name(replace: Set) -> None:
    """Runs those UPDATE_OPS that are named after the first tower."""
    sum_of = ModelGraph._sum_of

    def named(self: ModelGraph, *args: Any) -> Any:
        found = sum_of(self, *args)
        self.updates = [each for each in self.updates if each.name.startswith("tower_0/")]
        return found

    replace(ModelGraph, "_sum_of", named)


def changes_of_each_copy(replace: Set) -> None:
    """Lets every copy of the model change a variable once in a step."""
    replace(model_state, "_refuse_several", _nothing)


def functions_unread(replace: Set) -> None:
    """Takes no function for one that changes a variable."""
    replace(Functions, "change", lambda self, op, index: False)


def rates_at_any_time(replace: Set) -> None:
    """Leaves open whether an update reads a variable before or after the model changes it."""
    replace(incremental_apply, "_settings", lambda optimizer: [])
    replace(imported_update, "_read_late", lambda *args: False)


def step_before_it_counts(replace: Set) -> None:
    """Gives an optimizer no global step to count."""
    replace(imported_update, "applied", lambda optimizer, pairs, step: optimizer.apply_gradients(pairs))


def steps_of_any_kind(replace: Set) -> None:
    """Lets an optimizer count as it likes."""
    replace(counted_step, "_adds_one", lambda op: True)


def states_that_towers_share(replace: Set) -> None:
    """Lets towers, and all workers, change a local state as it comes."""
    for name in ("_refuse_shared", "_refuse_beside"):
        replace(model_state, name, _nothing)


def turns_in_any_order(replace: Set) -> None:
    """Publishes what a loop or a branch changes when its result is there."""
    replace(model_state, "finish_turns", _nothing)
    replace(model_state, "ways_out", lambda op, step: [op] if op._get_control_flow_context() is None else [])


def scopes_forgotten(replace: Set) -> None:
    """Lets an optimizer number its variable scopes as if the model had none."""
    replace(ScopeCounts, "within", lambda self: contextlib.nullcontext())


def trained_and_assigned(replace: Set) -> None:
    """Lets a model assign what the optimizer trains."""
    replace(model_state.State, "_refuse_trained", _nothing)


MENDS: Dict[str, Mend] = {
    mend.take_out.__name__: mend
    for mend in (
        Mend(("S1 by hand", "S1 activity"), collections_of_all_copies),
        Mend(("S1 layer",), losses_of_all_calls),
        Mend(("S1 object",), tensors_of_other_copies),
        Mend(("S2 regularized", "S2 decaying"), weights_before_the_optimizer),
        Mend(("S2 nonlinear",), losses_of_any_kind),
        Mend(("S3 misspelt",), keys_of_nobody),
        Mend(("S3 slash",), keys_as_they_are),
        Mend(("S4 dropped",), updates_by_a_name),
        Mend(("S4 twice", "S4 layer"), changes_of_each_copy),
        Mend(("S5 hidden",), functions_unread),
        Mend(("S5 trained",), trained_and_assigned),
        Mend(("S6",), rates_at_any_time),
        Mend(("S7 average", "S7 counts"), step_before_it_counts),
        Mend(("S7 skips",), steps_of_any_kind),
        Mend(("S9 shared", "S9 others"), states_that_towers_share),
        Mend(("S5 hidden", "S4 dropped", "S4 backwards"), turns_in_any_order),
        Mend(("S7 average",), scopes_forgotten),
    )
}


def take_out(name: str) -> None:
    """Takes a mend out of this process, for good."""

    def replace(owner: Any, name: str, value: Any) -> None:
        getattr(owner, name)  # which must be there
        setattr(owner, name, value)

    MENDS[name].take_out(replace)
