"""Variables that the model's own operations change, and not a gradient: averages, counters, shadow copies.

Every worker has such variables, but only the chief's values reach the servers: in each step the chief writes the
variables that its own model has changed. A worker whose step uses such a variable reads it from the servers before its
next step. A model may also request operations in addition to its step, such as the updates of the moving averages of
batch normalisation. These operations change such variables, too.
"""

import os
import re
from typing import Any, Container, Dict, Mapping, Sequence, Set

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.variables.functions import Functions
from cluster.variables.masters import Masters
from cluster.variables.uses import ancestors, finish_turns, ops_of, readers, sources, ways_out, writes

# The files of this package, of TensorFlow and of Keras.
_LIBRARIES = re.compile(re.escape(os.path.dirname(__file__)) + r"/|.*/(site|dist)-packages/(tensorflow\w*|\w*keras)/")
Changes = Dict[str, Dict[Any, Any]]  # by the name of a variable: the operations that change it, and their ways to it
_RANDOM = "seed_generator_state"  # Keras 3's: where its next random numbers come from, each worker's own


class State:
    """The variables that a model changes itself, in one worker's graph.

    Args:
      variables: the worker's variables by name, without the optimizer's own.
      trained: the names of the variables that have a gradient.
      step: the operations that a step runs.
      later: the operations of copies of the model after the first: of other towers and accumulated batches.

    Attributes:
      writes: the result of ``changes`` for ``variables``, without the states of Keras's random numbers.
      changed: the names of the variables that a step changes.
      used: the names of the variables that a step uses and that no gradient changes.

    Raises:
      JobError: the model changes a trained variable, or a later copy of the model changes a variable again.
    """

    def __init__(
        self,
        variables: Mapping[str, Any],
        trained: Container[str],
        step: Set[Any],
        later: Container[Any] = (),
    ):
        self._variables, self._step = variables, step
        own = {name: each for name, each in variables.items() if not name.endswith(_RANDOM)}
        self.writes = changes(own, step)
        self._refuse_trained(trained)
        _refuse_several(self.writes, later)
        self.changed = list(self.writes)
        self.used = [name for name, each in own.items() if name not in trained and each.op in step]

    def _refuse_trained(self, trained: Container[str]) -> None:
        for name, found in self.writes.items():
            if name in trained:
                raise JobError(
                    f"{place(next(iter(found)))}: the model assigns the variable {name}, which the optimizer trains;"
                    " expected only one of them to change it: give tf.get_variable a constraint, or set trainable=False"
                )

    def refuse_own(self, batch: Sequence[Any], results: Sequence[Any]) -> None:
        """Refuse a variable that each worker would change by its own examples, if ``results`` depend on the variable.

        A checkpoint has only the chief's value of such a variable. No other worker could continue from this value.

        Args:
          batch: the tensors of this worker's examples.
          results: losses and gradients.

        Raises:
          JobError: the model has such a variable.
        """
        needed, behind, examples = ancestors(results), sources(results), {each.op for each in batch}
        for name, found in self.writes.items():
            own = [op for op in found if op in needed and examples & sources(op.inputs)]
            if own and self._variables[name].op in behind:
                raise JobError(
                    f"{place(own[0])}: each worker would change the variable {name} by its own examples, and its loss"
                    " depends on this variable; expected a local variable, which is separate on each worker, or a"
                    " change by an operation in tf.GraphKeys.UPDATE_OPS, which only the chief runs, on its own"
                    " examples"
                )

    def refuse_by_each_worker(self, results: Sequence[Any]) -> None:
        """Refuse a variable that every worker would change in its step; call this method if workers share variables.

        Args:
          results: losses and gradients. Every worker makes the changes that they wait for.

        Raises:
          JobError: the model has such a variable.
        """
        _refuse_several(self.writes, ancestors(results), "worker")

    def publish(self, masters: Masters) -> Any:
        """Return the operation that writes to the servers the variables that this step has changed."""
        done = [end for found in self.writes.values() for op in found for end in ways_out(op, self._step)]
        with tf.control_dependencies(done):
            return tf.group(
                *[op for name in self.changed for op in masters.write(name, self._variables[name].read_value())]
            )


def changes(variables: Mapping[str, Any], step: Set[Any]) -> Changes:
    """Return the changes that a step makes to ``variables``, by the name of the variable.

    The changes of a variable are the result of ``cluster.variables.uses.writes``, limited to the operations of
    ``step``. The result leaves out variables that the step does not change.
    """
    functions = Functions(tf.get_default_graph())
    found = {name: writes(each, functions) for name, each in variables.items()}
    of_step = {name: {op: way for op, way in all_of.items() if op in step} for name, all_of in found.items()}
    return {name: each for name, each in of_step.items() if each}


def settle(state: State, results: Sequence[Any], step: Set[Any], later: Container[Any], workers: int = 1) -> None:
    """Delay the changes that the model makes to variables, also to local ones, until the whole step is computed.

    Changes that ``results`` wait for are not delayed.

    Args:
      results: the losses and gradients that a step computes with the old values.
      step: the operations that a step of the chief runs.
      later: the operations of copies of the model after the first.
      workers: the number of workers that train, each with local variables of its own.

    Raises:
      JobError: a step changes a local variable that several copies use, or only the chief would change it.
    """
    variables = {each.op.name: each for each in tf.local_variables()}
    found = changes(variables, step)
    _refuse_shared(found, variables, step, later)
    if workers > 1:
        _refuse_beside(found, variables, results)
    _write_last({**state.writes, **found}, results)


def _write_last(found: Changes, step: Sequence[Any]) -> None:
    """Let what is changed beside the loss be changed when the whole step has been computed, by every tower.

    Args:
      step: what a step computes with the old values: losses and gradients.
    """
    for op in {op for of_variable in found.values() for op in of_variable}:
        finish_turns(op)
    needed = ancestors(step)
    last = list(dict.fromkeys(op for thing in step for op in ops_of(thing)))
    for way in dict.fromkeys(way for of_variable in found.values() for way in of_variable.values()):
        if way not in needed:
            way._add_control_inputs(last)


def _refuse_several(found: Changes, later: Container[Any], of: str = "tower") -> None:
    """Refuse a change that a copy of the model after the first makes in a step: it would come several times."""
    for name, of_variable in found.items():
        again = [op for op in of_variable if op in later]
        if again:
            raise JobError(
                f"{place(again[0])}: every {of} would change the variable {name} once in a step; expected one"
                " change per step: add the operation to tf.GraphKeys.UPDATE_OPS, and do not let the loss wait for it"
            )


def _refuse_shared(found: Changes, variables: Mapping[str, Any], step: Set[Any], later: Container[Any]) -> None:
    """Refuse a local state of one tower's examples that another tower uses and would overwrite."""
    for name, of_variable in found.items():
        users = {op for op, _ in readers(variables[name]) if op in step}
        if len({op in later for op in users}) > 1:
            raise JobError(
                f"{place(next(iter(of_variable)))}: the step changes the local variable {name}, which all copies of"
                " the model share; expected a variable for each copy: make it with"
                " tf.Variable(…, collections=[tf.GraphKeys.LOCAL_VARIABLES]), or train one copy: set train.towers and"
                " train.accumulate to 1, and use one worker for launch verify"
            )


def _refuse_beside(found: Changes, variables: Mapping[str, Any], results: Sequence[Any]) -> None:
    """Refuse, with several workers, a local state that is changed beside the loss: only the chief would change it."""
    needed, behind = ancestors(results), sources(results)
    for name, of_variable in found.items():
        beside = [op for op in of_variable if op not in needed]
        if beside and variables[name].op in behind:
            raise JobError(
                f"{place(beside[0])}: only the chief runs tf.GraphKeys.UPDATE_OPS, and each worker has its own"
                f" local variable {name}; expected a loss that waits for the change: put tf.identity of the"
                " loss under tf.control_dependencies"
            )


def place(op: Any) -> str:
    """Return the ``file:line`` of the author's code that created ``op``, or the name of ``op`` if there is none."""
    frames: Sequence[Any] = op.traceback or ()
    own = [frame for frame in frames if not _LIBRARIES.match(frame[0])]
    return f"{own[-1][0]}:{own[-1][1]}" if own else str(op.name)


def with_updates(value: Any, updates: Sequence[Any]) -> Any:
    """Return ``value``, which every step fetches, as a tensor that waits for the operations ``updates``.

    Only the chief passes updates, and only those of its first tower: with more, a step would change an average several
    times.
    """
    with tf.control_dependencies(updates):
        return tf.identity(value) if updates else value
