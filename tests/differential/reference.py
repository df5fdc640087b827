"""Trains a model in one process with plain TensorFlow, which is what everything else is compared with.

Nothing of this project is loaded here. A step takes the batches of all workers as one, and the mean loss over all
examples of it. Run as a program it answers requests (``tests.differential.asking``).
"""

import os
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np
import tensorflow.compat.v1 as tf

from tests.differential.authors import Author, bound, named
from tests.differential.travelling import InFull, Rounded

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()

Values = Dict[str, np.ndarray]
GradsAndVars = List[Tuple[Any, Any]]


class OnlyTask(NamedTuple):
    """What ``inputs`` is told where there is no cluster."""

    batch_size: int
    num_workers: int = 1
    worker_index: int = 0
    is_chief: bool = True


class Trained(NamedTuple):
    """The author's own variables, and the step, before the first and after the last step.

    How much a model makes of a rounding, some steps later, is the model's own. So two more trainings are kept:
    ``swayed`` began with values that were off by a part of ``SWAY``, and ``rounded`` had bfloat16 on the way.
    """

    before: Values
    after: Values
    swayed: Values
    rounded: Values


SWAY = 2.0**-21  # some of the last bits of float32
_AVERAGE = "/ExponentialMovingAverage"  # the end of its name
_MOST_TURNS = 4  # for each step that counts


@dataclass(frozen=True)
class Program:
    """What a plain program runs: once at the start, then once a step, which counts unless its optimizer leaves it out.

    ``read`` begins with the first examples again. ``saver`` saves the author's ``variables``, and averages of them that
    an optimizer makes.
    """

    start: Any
    read: Any
    step: Any
    count: Any
    saver: Any
    variables: List[Any]
    travelling: InFull


def train(
    author: Author, args: Mapping[str, Any], batch: int, clip_norm: Optional[float] = None, rounded: bool = True
) -> Trained:
    """Trains ``args["steps"]`` steps of ``batch`` examples; what is not ``rounded`` has no bfloat16 on the way."""
    with tf.Graph().as_default():
        program = _program(author, args, batch, clip_norm, InFull())
        with tf.Session() as session:
            _start(program, session)
            first = session.run(program.variables)
        before, after = _run(program, args, first)
        swayed = _run(program, args, _off(first))[1]
    if not rounded:
        return Trained(before, after, swayed, after)
    with tf.Graph().as_default():
        short = _run(_program(author, args, batch, clip_norm, Rounded()), args, first)[1]
    return Trained(before, after, swayed, short)


def _run(program: Program, args: Mapping[str, Any], first: List[Any]) -> Tuple[Values, Values]:
    """What is saved before and after a training that begins with these values, in a session of its own."""
    with tf.Session() as session:
        _start(program, session)
        for variable, value in zip(program.variables, first):
            variable.load(value, session)
        before = _saved(program.saver, session)
        for last in args.get("legs", [args["steps"]]):
            session.run(program.read)
            _reach(int(last), program, session)
        return before, _saved(program.saver, session)


def _start(program: Program, session: Any) -> None:
    """Gives all variables their first values.

    Those that are trained come first: of TensorFlow's averages, whose first values they are, a branch of the newer
    control flow reads them whether they have a value or not.
    """
    for each in program.start:
        session.run(each)


def _reach(last: int, program: Program, session: Any) -> None:
    """Trains until so many steps have counted."""
    for _ in range(_MOST_TURNS * last):
        if int(session.run(program.count)) >= last:
            return
        program.travelling.run(session, program.step)
    raise RuntimeError(f"after {_MOST_TURNS * last} turns fewer than {last} steps have counted")


def _off(values: List[Any]) -> List[Any]:
    """Values that are off by a part of themselves, up and down."""
    signs = np.random.RandomState(1)
    return [
        (value * (1 + SWAY * signs.choice([-1.0, 1.0], np.shape(value)))).astype(value.dtype)
        if np.asarray(value).dtype.kind == "f"
        else value
        for value in values
    ]


def _saved(saver: Any, session: Any) -> Values:
    """What a checkpoint holds: one that is made in parts is whole there, under one name."""
    with TemporaryDirectory() as folder:
        reader = tf.train.load_checkpoint(saver.save(session, f"{folder}/model", write_meta_graph=False))
        return {name: np.asarray(reader.get_tensor(name)) for name in reader.get_variable_to_shape_map()}


def _program(
    author: Author, args: Mapping[str, Any], batch: int, clip_norm: Optional[float], travelling: InFull
) -> Program:
    global_step = tf.train.get_or_create_global_step()
    iterator = tf.data.make_initializable_iterator(author.inputs(OnlyTask(batch), args))
    loss = tf.reduce_mean(_per_example(bound(author, args)(**iterator.get_next())))
    optimizer = author.optimizer(args)
    own = tf.global_variables()
    step = _step(optimizer, loss, clip_norm, global_step, travelling)
    averages = [each for each in tf.global_variables()[len(own) :] if each.op.name.endswith(_AVERAGE)]
    trained = tf.trainable_variables()
    others = [each for each in tf.global_variables() if not any(each is other for other in trained)]
    start = [
        tf.variables_initializer(trained),  # once: the next first values would be other random numbers
        [tf.variables_initializer(others), tf.local_variables_initializer(), tf.tables_initializer()],
    ]
    # A program that goes on from a checkpoint begins its local variables again: TensorFlow saves none.
    read = tf.group(iterator.initializer, tf.local_variables_initializer())
    saver = tf.train.Saver([*own, *averages])
    return Program(start, read, step, global_step, saver, own, travelling)


def _per_example(output: Any) -> Any:
    """The loss that is trained: without metrics, and the sum of several."""
    loss = output[0] if isinstance(output, tuple) else output
    return tf.add_n(list(loss.values())) if isinstance(loss, dict) else loss


def _step(optimizer: Any, loss: Any, clip_norm: Optional[float], global_step: Any, travelling: InFull) -> Any:
    """Moves averages first, then the variables: what a step reads is what the last one left."""
    grouped = [(each, each.compute_gradients(loss, var_list=mine)) for each, mine in _groups(optimizer)]
    sent = [[(travelling.gradient(grad), variable) for grad, variable in pairs] for _, pairs in grouped]
    clipped = _clipped(sent, clip_norm)
    grads = [grad for pairs in clipped for grad, _ in pairs if grad is not None]
    computed = [loss, *tf.get_collection(tf.GraphKeys.UPDATE_OPS), *map(_whole, grads)]
    with tf.control_dependencies(computed):
        arrived = travelling.arrived()
    with tf.control_dependencies([*computed, *arrived]):
        *others, (last, pairs) = list(zip([each for each, _ in grouped], clipped))
        applied = [each.apply_gradients(mine) for each, mine in others]
        return [*applied, last.apply_gradients(pairs, global_step=global_step)]


def _groups(optimizer: Any) -> List[Tuple[Any, Optional[List[Any]]]]:
    """Each optimizer with its variables, by the longest beginning of their names; one alone finds its own."""
    if not isinstance(optimizer, dict):
        return [(optimizer, None)]
    prefixes = sorted(optimizer, key=len, reverse=True)
    owner = {v.op.name: next(p for p in prefixes if _begins(v.op.name, p)) for v in tf.trainable_variables()}
    return [
        (optimizer[prefix], [v for v in tf.trainable_variables() if owner[v.op.name] == prefix]) for prefix in prefixes
    ]


def _begins(name: str, prefix: str) -> bool:
    """Whether a name is ``prefix`` or lies below it; below "" lie all."""
    return not prefix or name == prefix or name.startswith(prefix.rstrip("/") + "/")


def _clipped(groups: List[GradsAndVars], norm: Optional[float]) -> List[GradsAndVars]:
    """The gradients of all groups together, whose global norm is at most ``norm``."""
    if norm is None:
        return groups
    squares = [
        tf.reduce_sum(tf.square(tf.cast(_whole(g), tf.float64))) for pairs in groups for g, _ in pairs if g is not None
    ]
    scale = tf.minimum(tf.constant(1.0, tf.float64), tf.constant(norm, tf.float64) / tf.sqrt(tf.add_n(squares)))
    return [[(_scaled(grad, scale), variable) for grad, variable in pairs] for pairs in groups]


def _whole(grad: Any) -> Any:
    """A gradient with the rows that it names twice summed."""
    return tf.convert_to_tensor(grad)


def _scaled(grad: Any, scale: Any) -> Any:
    if grad is None:
        return None
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(grad.values * tf.cast(scale, grad.dtype), grad.indices, grad.dense_shape)
    return grad * tf.cast(scale, grad.dtype)


def keep(trained: Trained, path: str) -> None:
    """Writes what came of it where ``kept`` finds it."""
    parts = trained._asdict()
    values = {f"{part}:{name}": value for part, found in parts.items() for name, value in found.items()}
    with open(f"{path}.new", "wb") as file:
        np.savez(file, **values)
    os.replace(f"{path}.new", path)


def kept(path: str) -> Trained:
    """What ``keep`` wrote."""
    with np.load(path) as found:
        parts: Dict[str, Values] = {part: {} for part in Trained._fields}
        for name in found.files:
            part, _, variable = name.partition(":")
            parts[part][variable] = found[name]
    return Trained(**parts)


def answer(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Trains what is asked for, and keeps it at ``path``; tells what has moved."""
    trained = train(named(request["author"]), request["args"], request["batch"], request["clip_norm"])
    keep(trained, request["path"])
    return {"moved": moved(trained)}


def moved(trained: Trained) -> List[str]:
    """Names of the variables, the step aside, that training has changed."""
    changed = [name for name, value in trained.after.items() if not np.array_equal(value, trained.before[name])]
    return sorted(set(changed) - {"global_step"})


if __name__ == "__main__":
    from tests.differential.asking import answer_all

    answer_all(answer)
