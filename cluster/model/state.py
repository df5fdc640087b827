"""Variables that no gradient changes but the model itself does: averages, counters, shadows.

Every worker has them; the chief's are the truth. In each step it writes to the servers what its own model has changed,
and a worker whose step uses such a variable reads it from there before its next one.
"""

import os
import re
from typing import Any, Container, Mapping, Sequence, Set

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.variables.masters import Masters
from cluster.variables.uses import ancestors, ops_of, way_in, ways_out, writes

# The files of this package, of TensorFlow and of Keras.
_LIBRARIES = re.compile(re.escape(os.path.dirname(__file__)) + r"/|.*/(site|dist)-packages/(tensorflow\w*|keras)/")
_RANDOM = "seed_generator_state"  # Keras 3's: where its next random numbers come from, each worker's own


class State:
    """The state of a model in one worker's graph.

    Args:
      variables: the worker's, by name; the optimizer's own left out.
      trained: names of those that have a gradient.
      step: the operations that a step runs.

    ``changed`` are the names of those that a step changes; ``used`` of those that it uses, and no gradient changes.
    """

    def __init__(self, variables: Mapping[str, Any], trained: Container[str], step: Set[Any]):
        self._variables, self._step = variables, step
        own = {name: each for name, each in variables.items() if not name.endswith(_RANDOM)}
        self._writes = {name: [op for op in writes(each) if op in step] for name, each in own.items()}
        self._refuse_trained(trained)
        self._refuse_other_towers()
        self.changed = [name for name, found in self._writes.items() if found]
        self.used = [name for name, each in own.items() if name not in trained and each.op in step]

    def _refuse_trained(self, trained: Container[str]) -> None:
        for name, found in self._writes.items():
            if found and name in trained:
                raise JobError(
                    f"{place(found[0])}: the model assigns the variable {name}, which the optimizer trains;"
                    " expected one or the other: give tf.get_variable a constraint, or make it trainable=False"
                )

    def _refuse_other_towers(self) -> None:
        for name, found in self._writes.items():
            again = [op for op in found if op.name.startswith("tower_") and not op.name.startswith("tower_0/")]
            if again:
                raise JobError(
                    f"{place(again[0])}: every tower would change the variable {name} once in a step; expected one"
                    " change a step: add the operation to tf.GraphKeys.UPDATE_OPS, and do not let the loss wait for it"
                )

    def write_last(self, step: Sequence[Any]) -> None:
        """Let what is changed beside the loss be changed when the whole step has been computed, by every tower.

        Args:
          step: what a step computes with the old values: losses and gradients.
        """
        needed = ancestors(step)
        last = list(dict.fromkeys(op for thing in step for op in ops_of(thing)))
        for op in dict.fromkeys(way_in(op) for found in self._writes.values() for op in found):
            if op not in needed:
                op._add_control_inputs(last)

    def publish(self, masters: Masters) -> Any:
        """Make the operation that writes to the servers what this step has changed."""
        done = [end for found in self._writes.values() for op in found for end in ways_out(op, self._step)]
        with tf.control_dependencies(done):
            return tf.group(*[op for name in self.changed for op in masters.write(name, _now(self._variables[name]))])


def _now(variable: Any) -> Any:
    return variable.read_value()


def place(op: Any) -> str:
    """Return ``file:line`` of the author that made an operation, else its name."""
    frames: Sequence[Any] = op.traceback or ()
    own = [frame for frame in frames if not _LIBRARIES.match(frame[0])]
    return f"{own[-1][0]}:{own[-1][1]}" if own else str(op.name)
