"""The graph of TensorFlow's own documentation, for ``train.sync: stock``: all variables are whole, and on servers.

``tf.train.replica_device_setter`` puts each variable on the server that holds the fewest bytes so far. Every tower
reads the variables there, and TensorFlow's own class makes the steps (``cluster.steps.stock_worker``).
"""

from dataclasses import replace
from typing import Any, Mapping, Sequence

from cluster.errors import JobError
from cluster.model.model_graph import ModelGraph
from cluster.model.model_state import State, changes, place, settle, with_updates
from cluster.runtime.devices import ps_device
from cluster.runtime.tf_compat import tf
from cluster.steps.extension import extensions, refuse_unfit
from cluster.steps.replica import Replica
from cluster.steps.stock_worker import StockWorker
from cluster.updates.incremental_apply import is_elementwise
from cluster.updates.nan_guard import guard
from cluster.variables.layout import Layout
from cluster.variables.placement import Placement, device_setter
from cluster.variables.profile import profile_variables
from cluster.variables.uses import ancestors, sources


def stock_replica(model: ModelGraph, estimate: bool) -> Replica:
    """Add the model and its steps to the current graph, and return its parts.

    Args:
      estimate: whether the graph is only described, and never run; then every batch counts as complete.
    """
    task, train, num_ps = model.task, model.train, len(model.task.cluster["ps"])
    with tf.device(ps_device(0)):
        global_step = tf.train.get_or_create_global_step()
    placement = Placement(num_ps)
    model.build(lambda device: device_setter(placement, device), estimate)
    refuse_unfit(model, extensions(tf.get_default_graph()))
    grads = {variable.op.name: grad for grad, variable in model.gradients.pairs if grad is not None}
    _settle_state(model, grads)
    loss, named = guard(model.loss, grads, train.on_nan, model.gradients.scales)
    loss = with_updates(loss, model.updates if task.is_chief else [])
    pairs = [(grad, model.variables[name]) for grad, name in named]
    agreed = [*model.variables.values(), global_step]
    stepper = StockWorker(
        optimizer=model.optimizer,
        grads_and_vars=pairs,
        global_step=global_step,
        loss=loss,
        num_workers=task.num_workers,
        worker_index=task.worker_index,
        backup_workers=train.backup_workers,
    )
    _refuse_run_by_optimizer(model, stepper.applied)
    looked_at = profile_variables(
        list(model.variables.values()), grads, False, ancestors([model.loss, *grads.values()])
    )
    whole = {name: replace(each, may_be_cut=False) for name, each in looked_at.items()}
    return Replica(
        graph=tf.get_default_graph(),
        model=model,
        stepper=stepper,
        placement=placement,
        layout=Layout(whole, num_ps),
        global_step=global_step,
        variables=tf.global_variables(),
        agreed=agreed,
        buckets=[],
        first_values=[tf.global_variables_initializer()],
    )


def _settle_state(model: ModelGraph, grads: Mapping[str, Any]) -> None:
    """Let what the model changes itself change when the step is computed, once in a step; else refuse it."""
    results = [model.loss, *grads.values(), *(model.measured.tensors if model.measured else [])]
    step, later = ancestors([*results, *model.updates]), model.sharing.later_operations()
    state = State(model.own_variables, grads, step, later)
    _refuse_changing(model.optimizer, [model.variables[name] for name in state.changed])
    settle(state, results, step, later, model.task.num_workers)
    if model.task.num_workers > 1:
        state.refuse_by_each_worker(results)


def _refuse_changing(optimizer: Any, changed: Sequence[Any]) -> None:
    """Refuse an optimizer with a setting that the model changes in each step.

    A thread of the chief applies gradients there, at any time before or after the change.

    Raises:
      JobError: it has one.
    """
    if is_elementwise(optimizer) and not is_elementwise(optimizer, changed):
        names = ", ".join(each.op.name for each in changed)
        raise JobError(
            "train.sync: expected overlapped or plain with an optimizer that reads a variable which the model changes"
            f" in each step (one of {names}), found stock"
        )


def _refuse_run_by_optimizer(model: ModelGraph, applied: Sequence[Any]) -> None:
    """Refuse an optimizer that itself runs what changes or reads in the model.

    A thread of the chief would run it, for all towers, at another time than the step, and with other examples.

    Args:
      applied: operations of that thread.

    Raises:
      JobError: there is one.
    """
    needed, examples = ancestors(applied), {each.op for each in model.examples}
    of_model = {op for copy in model.sharing.operations for op in copy}
    changing = [op for found in changes(model.own_variables, needed).values() for op in found if op in of_model]
    taking = [op for op in needed & of_model if examples & sources(op.inputs)] if examples & needed else []
    found = changing or sorted(taking, key=lambda op: str(op.name))
    if found:
        raise JobError(
            f"{place(found[0])}: the optimizer's apply_gradients waits for this operation of the model; with"
            " train.sync: stock, expected apply_gradients to need only gradients and variables; put the"
            " operation into tf.GraphKeys.UPDATE_OPS"
        )
