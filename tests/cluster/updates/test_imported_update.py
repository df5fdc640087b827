"""Any optimizer does to the servers' variables what it does in one process, or is refused with a reason.

Two workers with half a batch each are compared with one process that has the whole batch.
"""

import re
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import numpy as np
import pytest

from cluster.errors import JobError
from cluster.runtime.gradients import merge_rows
from cluster.runtime.tf_compat import tf
from cluster.sharing.graph_collections import own_entries
from cluster.towers import add_gradients
from cluster.updates import nan_guard
from cluster.updates.imported_update import ImportedUpdate, VariableSpec
from cluster.updates.incremental_apply import is_elementwise
from cluster.updates.optimizer_gradients import OwnGradients, own_gradients, refuse_minimize
from cluster.variables.masters import plain_name

CPU = "/device:CPU:0"
SHAPES = {"emb": [6, 3], "l1/w": [3, 4], "l1/LayerNorm/beta": [4], "idle": [2]}
VALUES = {name: np.random.RandomState(1).normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
IDS = np.array([[0, 1, 1, 4], [4, 0, 2, 2], [2, 2, 2, 5], [5, 1, 0, 3]])
# TensorFlow's norm of a sparse gradient depends on whether its rows are merged; so here is none twice.
DISTINCT = np.array([[0, 1, 3, 4], [4, 0, 1, 2], [1, 2, 3, 5], [5, 1, 0, 3]])
POISONED = np.array([IDS[0], [5, 5, 5, 5], IDS[1], IDS[2]])  # the loss of the second is no number
Optimizer: Any = tf.train.Optimizer
Adam: Any = tf.train.AdamOptimizer
Descent: Any = tf.train.GradientDescentOptimizer
Momentum: Any = tf.train.MomentumOptimizer
Values = Dict[str, Any]


class AdamWeightDecay(Optimizer):  # type: ignore[misc]
    """BERT's: makes variables by name, decays all but some, and applies nothing by ``super()``."""

    def __init__(self, rate: float):
        super().__init__(False, "AdamWeightDecayOptimizer")
        self._rate = rate

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        assignments = []
        for grad, param in grads_and_vars:
            if grad is None:
                continue
            of = param.name[:-2]
            m, v = (self._zeros(f"{of}/{kind}", param) for kind in ("adam_m", "adam_v"))
            grad = tf.convert_to_tensor(grad)
            next_m, next_v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * tf.square(grad)
            update = next_m / (tf.sqrt(next_v) + 1e-6)
            if not re.search("LayerNorm|bias", of):
                update += 0.01 * param
            assignments += [param.assign(param - self._rate * update), m.assign(next_m), v.assign(next_v)]
        return tf.group(*assignments, name=name)

    @staticmethod
    def _zeros(name: str, param: Any) -> Any:
        return tf.get_variable(name, param.shape.as_list(), initializer=tf.zeros_initializer(), trainable=False)


class Lars(Momentum):  # type: ignore[misc]
    """Scales each gradient by the norm of its whole variable."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return super()._apply_dense(grad * tf.norm(var) / (tf.norm(grad) + 1e-6), var)


class Clipping(Adam):  # type: ignore[misc]
    """By the norm of all gradients."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        grads, variables = zip(
            *[pair for pair in super().compute_gradients(loss, *args, **kwargs) if pair[0] is not None]
        )
        return list(zip(tf.clip_by_global_norm(grads, 0.5)[0], variables))


class Freezing(Descent):  # type: ignore[misc]
    """By name, of the gradients that it has."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = super().compute_gradients(loss, *args, **kwargs)
        return [(grad, variable) for grad, variable in pairs if not variable.op.name.startswith("l1/")]


class FreezingBefore(Adam):  # type: ignore[misc]
    """By name, of the variables that it asks for."""

    def compute_gradients(self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        chosen = [each for each in var_list if "l1/" not in each.name]
        return super().compute_gradients(loss, chosen, *args, **kwargs)


class Decaying(Adam):  # type: ignore[misc]
    """Adds to a gradient what depends on its variable."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = super().compute_gradients(loss, *args, **kwargs)
        return [(None if grad is None else tf.convert_to_tensor(grad) + 0.1 * each, each) for grad, each in pairs]


class ByNorm(Descent):  # type: ignore[misc]
    """Keeps an average of the norms of gradients, in a variable of its own."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = super().compute_gradients(loss, *args, **kwargs)
        pairs = [(tf.convert_to_tensor(grad), each) for grad, each in pairs if grad is not None]
        average = tf.get_variable("norms", [], initializer=tf.zeros_initializer(), trainable=False)
        now = tf.assign(average, 0.9 * average + 0.1 * tf.global_norm([grad for grad, _ in pairs]))
        return [(grad / (1 + now), each) for grad, each in pairs]


class InALoop(Descent):  # type: ignore[misc]
    """Halves a gradient, in a loop and a branch, until it is small."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        def more(index: Any, value: Any) -> Any:
            return index + 1, tf.cond(tf.norm(value) > 1.0, lambda: value * 0.5, lambda: value)

        return super()._apply_dense(tf.while_loop(lambda index, _: index < 3, more, (0, grad))[1], var)


class Regularised(Descent):  # type: ignore[misc]
    """Adds to the loss a term without examples."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        decay = tf.add_n([tf.nn.l2_loss(each) for each in tf.trainable_variables()])
        return super().compute_gradients(loss + 0.1 * decay, *args, **kwargs)


class AddingWhatIsCollected(Descent):  # type: ignore[misc]
    """Adds to the loss what the model has laid down for that."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        total = tf.add_n([loss, *tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)])
        assert tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)).shape.ndims == 0
        return super().compute_gradients(total, *args, **kwargs)


class Averaging(Descent):  # type: ignore[misc]
    """Keeps averages of variables that follow more slowly the more steps were counted, this one included."""

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        updated = super().apply_gradients(grads_and_vars, global_step, name)
        average = tf.train.ExponentialMovingAverage(0.99, num_updates=tf.train.get_global_step())
        with tf.control_dependencies([updated]):
            averaged = average.apply([variable for grad, variable in grads_and_vars if grad is not None])
        with tf.control_dependencies([averaged]):
            return tf.group(
                *[
                    tf.assign(each, average.average(each))
                    for _, each in grads_and_vars
                    if average.average(each) is not None
                ]
            )


class Counting(AdamWeightDecay):
    """Counts by itself what its base class does not."""

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        updated = super().apply_gradients(grads_and_vars, None, name)
        with tf.control_dependencies([updated, global_step.assign_add(1)]):
            seen = tf.cast(tf.train.get_global_step(), tf.float32)
            return tf.group(
                *[variable.assign_add(0.01 * seen * tf.ones_like(variable)) for _, variable in grads_and_vars]
            )


class Scaling(Adam):  # type: ignore[misc]
    """Scales the loss, and gradients back, as for numbers of 16 bits."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = super().compute_gradients(loss * 128.0, *args, **kwargs)
        return [(None if grad is None else tf.convert_to_tensor(grad) / 128.0, each) for grad, each in pairs]


def of_its_step() -> Any:
    return Adam(tf.train.exponential_decay(0.1, tf.train.get_or_create_global_step(), 1, 0.5))


def dynamically_scaling(scale: float) -> Any:
    """TensorFlow's own, which halves its scale when gradients are no numbers, and keeps it in a variable."""
    library = tf.train.experimental if tf.__version__.startswith("1.") else tf.mixed_precision
    kept = library.DynamicLossScale(initial_loss_scale=scale, increment_period=2)
    return library.MixedPrecisionLossScaleOptimizer(Adam(0.1), kept)


OPTIMIZERS: Dict[str, Callable[[], Any]] = {
    "bert": lambda: AdamWeightDecay(0.05),
    "lars": lambda: Lars(0.1, 0.9),
    "clipping": lambda: Clipping(0.1),
    "freezing": lambda: Freezing(0.1),
    "freezing before": lambda: FreezingBefore(0.1),
    "decaying": lambda: Decaying(0.1),
    "by norm": lambda: ByNorm(0.1),
    "in a loop": lambda: InALoop(0.1),
    "regularised": lambda: Regularised(0.1),
    "adding what is collected": lambda: AddingWhatIsCollected(0.1),
    "averaging": lambda: Averaging(0.1),
    "counting": lambda: Counting(0.05),
    "scaling": lambda: Scaling(0.1),
    "of its step": of_its_step,
    "scaling dynamically": lambda: dynamically_scaling(2.0**10),
    "skipping": lambda: dynamically_scaling(2.0**10),
}


def of_contrib(name: str) -> Callable[[], Any]:
    """What makes an optimizer with decoupled weight decay, whose ``minimize`` only hands its arguments on."""

    def make() -> Any:
        from tensorflow.contrib import opt

        more = {"momentum": 0.9} if name == "MomentumWOptimizer" else {}
        kind = getattr(opt, name, None) or opt.extend_with_decoupled_weight_decay(Adam)
        made = kind(weight_decay=0.05, learning_rate=0.1, **more)
        refuse_minimize(made)
        return made

    return make


if tf.__version__.startswith("1."):  # 2.x has no contrib
    OPTIMIZERS.update({each: of_contrib(each) for each in ("AdamWOptimizer", "MomentumWOptimizer", "extended")})


def model(ids: Any, constraint: Any) -> Any:
    """The mean loss, and the variables by name; one of them is not trained."""
    made = {
        name: tf.get_variable(
            name,
            shape,
            initializer=tf.constant_initializer(VALUES[name]),
            constraint=constraint if name == "l1/w" else None,
            regularizer=(lambda value: 0.1 * tf.nn.l2_loss(value)) if name == "l1/w" else None,
            use_resource=False,
        )
        for name, shape in SHAPES.items()
    }
    y = tf.nn.embedding_lookup(made["emb"], ids) @ made["l1/w"] + made["l1/LayerNorm/beta"]
    poison = tf.where_v2(tf.reduce_all(tf.equal(ids, 5)), np.inf, 1.0)
    return tf.reduce_mean(tf.square(y - 1.0)) * tf.cast(poison, tf.float32), made


def in_one_process(
    make: Callable[[], Any], batches: Any = IDS, constraint: Any = None
) -> Tuple[List[Values], List[str]]:
    """The variables after each step, and the names of all that there are at the end."""
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int64, [len(IDS[0])])
        loss, made = model(ids, constraint)
        step, optimizer = tf.train.get_or_create_global_step(), make()
        following = tf.identity(step.read_value() + 1)
        pairs = optimizer.compute_gradients(loss, list(made.values()))
        computed = [tf.convert_to_tensor(grad) for grad, _ in pairs if grad is not None]
        with tf.control_dependencies([following, *computed]):
            update = optimizer.apply_gradients(pairs, global_step=step)
        with tf.control_dependencies([update]):  # also where the optimizer does not count
            counted = tf.assign(step, following).op
        session.run(tf.global_variables_initializer())
        return taken(session, ids, batches, [counted], made), sorted(each.op.name for each in tf.global_variables())


def taken(session: Any, ids: Any, batches: Any, runs: List[Any], variables: Values) -> List[Values]:
    values = []
    for batch in batches:
        for each in runs:
            session.run(each, {ids: batch})
        values.append(session.run(variables))
    return values


class Whole(NamedTuple):
    """The graph of two workers, and the servers' part of it."""

    ids: Any
    imported: ImportedUpdate
    mirrors: Values
    scales: bool


def imported(make: Callable[[], Any], constraint: Any = None) -> Whole:
    ids = tf.placeholder(tf.int64, [len(IDS[0])])
    tf.train.get_or_create_global_step()
    gradients: List[OwnGradients] = []
    optimizer = None
    for part in tf.split(ids, 2):
        with tf.variable_scope("", reuse=bool(gradients)):
            loss, made = model(part, constraint)
        known = len(tf.global_variables())
        optimizer = optimizer or make()
        gradients.append(own_gradients(optimizer, loss, list(made.values()), 0.5, [ids]))
        if len(gradients) == 1:
            own = tf.global_variables()[known:]
    pairs = add_gradients([each.pairs for each in gradients])
    specs = {variable.op.name: VariableSpec(variable, CPU, _sparse(grad)) for grad, variable in pairs}
    specs.update({each.op.name: VariableSpec(each, CPU, None, is_made=False) for each in own})
    whole = ImportedUpdate(make, specs, CPU, collections=own_entries())
    whole.apply_gradients(
        [
            (merge_rows(grad) if _sparse(grad) else grad, whole.masters[variable.op.name])
            for grad, variable in pairs
            if grad is not None
        ]
    )
    return Whole(ids, whole, {**made, **{each.op.name: each for each in own}}, gradients[0].scales)


def _sparse(grad: Any) -> Any:
    return None if grad is None else isinstance(grad, tf.IndexedSlices)


def on_servers(make: Callable[[], Any], batches: Any = IDS, constraint: Any = None) -> Tuple[List[Values], List[str]]:
    """The same, computed by two workers; names are the author's."""
    with tf.Graph().as_default(), tf.Session() as session:
        built = imported(make, constraint)
        masters, others, step = built.imported.masters, built.imported.others, built.imported.global_step
        push = [tf.assign(master, built.mirrors[name]).op for name, master in masters.items()]
        pull = [tf.assign(mirror, masters[name]).op for name, mirror in built.mirrors.items()]
        counted = tf.assign_add(step, 1).op
        session.run(tf.global_variables_initializer())
        for given in (push, step.initializer, *(each.initializer for each in others)):
            session.run(given)
        trained = {name: masters[name] for name in SHAPES}
        values = taken(session, built.ids, batches, [built.imported.update, counted, pull], trained)
        return values, sorted(plain_name(each) for each in (*masters.values(), *others, step))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_does_to_the_mean_gradients_what_it_does_in_one_process(name: str) -> None:
    batches = {"clipping": DISTINCT, "skipping": POISONED}.get(name, IDS)
    (ours, our_names), (theirs, their_names) = (run(OPTIMIZERS[name], batches) for run in (on_servers, in_one_process))
    assert our_names == their_names
    for found, expected in zip(ours, theirs):
        for each in SHAPES:
            np.testing.assert_allclose(found[each], expected[each], rtol=1e-4, atol=1e-5, err_msg=each)
    assert any((ours[-1][each] != VALUES[each]).any() for each in SHAPES)


def test_a_variable_keeps_to_its_constraint() -> None:
    def bound(value: Any) -> Any:
        return tf.clip_by_value(value, -0.5, 0.5)

    (ours, _), (theirs, _) = (run(OPTIMIZERS["clipping"], DISTINCT, bound) for run in (on_servers, in_one_process))
    np.testing.assert_allclose(ours[-1]["l1/w"], theirs[-1]["l1/w"], rtol=1e-4, atol=1e-5)
    assert np.abs(ours[-1]["l1/w"]).max() == 0.5


def test_gradients_are_clipped_by_the_norm_of_all_after_what_the_optimizer_does_to_them() -> None:
    moved = {}
    for norm in (None, 0.25):
        with tf.Graph().as_default(), tf.Session() as session:
            mirrors = [tf.get_variable(name, [2], use_resource=False) for name in ("l1/a", "b")]
            tf.train.get_or_create_global_step()
            specs = {each.op.name: VariableSpec(each, CPU, False) for each in mirrors}
            found = ImportedUpdate(lambda: Freezing(1.0), specs, CPU, clip_norm=norm)
            frozen, free = found.masters.values()
            update = found.apply_gradients([(tf.fill([2], 100.0), frozen), (tf.constant([3.0, 4.0]), free)])
            session.run([found.global_step.initializer, *(tf.assign(each, tf.zeros([2])) for each in (frozen, free))])
            session.run(update)
            moved[norm] = np.array(session.run([frozen, free]))
    np.testing.assert_allclose(moved[None], [[0, 0], [-3, -4]])
    np.testing.assert_allclose(moved[0.25], [[0, 0], [-0.15, -0.2]], rtol=1e-5)  # of what is not frozen alone


def test_where_only_the_optimizer_judges_gradients_a_new_value_that_is_no_number_is_told() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        mirror = tf.get_variable("w", [2], use_resource=False)
        tf.train.get_or_create_global_step()
        found = ImportedUpdate(OPTIMIZERS["scaling"], {"w": VariableSpec(mirror, CPU, False)}, CPU)
        found.is_checked = True
        update = found.apply_gradients([(tf.constant([1.0, np.nan]), found.masters["w"])])
        session.run([found.global_step.initializer, tf.assign(found.masters["w"], tf.zeros([2]))])
        for each in found.others:
            session.run(each.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(update)
        assert nan_guard.reason(caught.value) == "the new value of w is not a finite number"


@pytest.mark.parametrize(
    ("name", "scales"), [("scaling", True), ("scaling dynamically", True), ("regularised", False), ("clipping", False)]
)
def test_whether_the_loss_was_scaled_before_is_told(name: str, scales: bool) -> None:
    with tf.Graph().as_default():
        assert imported(OPTIMIZERS[name]).scales is scales


def test_everything_of_it_is_on_the_servers_under_their_scope() -> None:
    with tf.Graph().as_default() as graph:
        weights = tf.get_variable("w", [4], use_resource=False)
        tf.train.get_or_create_global_step()
        before = set(graph.get_operations())
        found = ImportedUpdate(
            OPTIMIZERS["bert"], {"w": VariableSpec(weights, "/job:ps/task:1", False)}, "/job:ps/task:0"
        )
        made = [op for op in graph.get_operations() if op not in before]
        assert all(op.name.startswith("servers/") and "/job:ps" in op.device for op in made)
        slots = {plain_name(each): each.device for each in (*found.masters.values(), *found.others)}
        assert slots == dict.fromkeys(["w", "w/adam_m", "w/adam_v"], "/job:ps/task:1")
        assert found.global_step.device == "/job:ps/task:0"


@pytest.mark.parametrize("name", ["bert", "by norm", "decaying"])
def test_a_step_that_is_given_up_while_a_gradient_is_missing_has_changed_nothing(name: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        mirrors = [tf.get_variable(name, [4], use_resource=False) for name in "ab"]
        tf.train.get_or_create_global_step()
        found = ImportedUpdate(
            OPTIMIZERS[name], {each.op.name: VariableSpec(each, CPU, False) for each in mirrors}, CPU
        )
        missing = tf.FIFOQueue(1, tf.float32, [4]).dequeue()
        a, b = found.masters.values()
        update = found.apply_gradients([(tf.ones([4]), a), (missing, b)])
        variables = [a, b, *found.others]
        session.run(found.global_step.initializer)
        session.run([tf.assign(master, tf.fill([4], 3.0)) for master in (a, b)])
        for each in found.others:
            session.run(each.initializer)
        before = session.run(variables)
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(update, options=tf.RunOptions(timeout_in_ms=300))
        for was, now in zip(before, session.run(variables)):
            np.testing.assert_array_equal(was, now)


class OnItsOwn(Adam):  # type: ignore[misc]
    def compute_gradients(self, loss: Any, var_list: Any = None, **kwargs: Any) -> Any:
        return list(zip(tf.gradients(loss, var_list), var_list))


class Twice(Adam):  # type: ignore[misc]
    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        super().compute_gradients(loss, *args, **kwargs)
        return super().compute_gradients(loss, *args, **kwargs)


class ByLoss(Adam):  # type: ignore[misc]
    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = super().compute_gradients(loss, *args, **kwargs)
        return [(None if grad is None else tf.convert_to_tensor(grad) / (1 + loss), each) for grad, each in pairs]


class ByCollectedLoss(Adam):  # type: ignore[misc]
    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        size = 1 + tf.losses.get_regularization_loss()
        return super().apply_gradients([(grad / size, each) for grad, each in grads_and_vars if each.op.name == "l1/w"])


class Nothing(Adam):  # type: ignore[misc]
    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        super().apply_gradients(grads_and_vars, global_step, name)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (OnItsOwn, "does not call tf.train.Optimizer.compute_gradients"),
        (Twice, "asks for one variable's gradient more than once"),
        (ByLoss, "uses the loss for more than its gradient"),
        (ByCollectedLoss, "needs the model's entries of the collection 'regularization_losses'"),
        (Nothing, "expected apply_gradients to return an operation, found None"),
    ],
)
def test_what_cannot_be_done_with_the_mean_gradients_is_refused_by_name(kind: Any, told: str) -> None:
    with tf.Graph().as_default(), pytest.raises(JobError, match=rf"^optimizer {kind.__name__}( \(\S+\))?: .*{told}"):
        imported(lambda: kind(0.1))


def test_a_minimize_of_its_own_is_refused_but_one_that_hands_on() -> None:
    class HandingOn(Adam):  # type: ignore[misc]
        def minimize(self, *args: Any, **kwargs: Any) -> Any:
            return super().minimize(*args, **kwargs)

    class Minimizing(Adam):  # type: ignore[misc]
        def minimize(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
            return super().minimize(2.0 * loss, *args, **kwargs)

    with tf.Graph().as_default():
        for each in (Adam(0.1), HandingOn(0.1)):
            refuse_minimize(each)
        with pytest.raises(JobError, match=r"optimizer Minimizing: .* found its own minimize \(\S+:\d+\), which is"):
            refuse_minimize(Minimizing(0.1))


def test_tensorflow_computes_gradients_as_before_afterwards_also_after_a_mistake() -> None:
    own = Optimizer.compute_gradients
    with tf.Graph().as_default(), pytest.raises(JobError):
        imported(lambda: OnItsOwn(0.1))
    assert Optimizer.compute_gradients is own


def test_only_tensorflows_own_optimizers_are_known_to_treat_each_element_by_itself() -> None:
    assert all(
        is_elementwise(each) for each in (Descent(0.1), Adam(0.1), Momentum(0.1, 0.9), tf.train.FtrlOptimizer(0.1))
    )
    assert not any(is_elementwise(each) for each in (Lars(0.1, 0.9), Clipping(0.1), AdamWeightDecay(0.1)))


@pytest.mark.parametrize("method", ["apply_gradients", "compute_gradients", "_prepare", "_apply_dense", "_zeros_slot"])
def test_an_optimizer_that_was_given_a_method_of_its_own_is_not_known_to_do_so(method: str) -> None:
    changed = Adam(0.1)
    setattr(changed, method, print)
    assert not is_elementwise(changed)


def rate_of_the_model() -> Any:
    """A rate that a model may keep in a variable, and halve in each step."""
    with tf.variable_scope("schedule", reuse=tf.AUTO_REUSE):
        return tf.get_variable("rate", [], initializer=tf.ones_initializer(), trainable=False, use_resource=False)


@pytest.mark.parametrize("make", [lambda: Descent(rate_of_the_model()), lambda: Descent(rate_of_the_model() * 1.0)])
def test_what_the_model_changes_is_read_once_the_change_of_the_step_is_there(make: Callable[[], Any]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.get_or_create_global_step()
        mirrors = {"w": tf.get_variable("w", [], use_resource=False), "schedule/rate": rate_of_the_model()}
        specs = {
            "w": VariableSpec(mirrors["w"], CPU, False),
            "schedule/rate": VariableSpec(rate_of_the_model(), CPU, None),
        }
        found = ImportedUpdate(make, specs, CPU, changing=["schedule/rate"])
        assert found.reads_changing
        rate = found.masters["schedule/rate"]
        found.publish = lambda: tf.assign(rate, rate.read_value() / 2).op
        update = found.apply_gradients([(tf.constant(1.0), found.masters["w"])])
        session.run([tf.assign(found.masters["w"], 0.0), tf.assign(rate, 1.0), found.global_step.initializer])
        for expected in (-0.5, -0.75, -0.875):
            session.run(update)
            assert session.run(found.masters["w"]) == expected


class Raising(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """Changes itself what the model changes."""

    def apply_gradients(self, pairs: Any, global_step: Any = None, name: Any = None) -> Any:
        return tf.group(super().apply_gradients(pairs, global_step), tf.assign_add(rate_of_the_model(), 1.0))


def test_what_the_update_changes_too_is_changed_once_the_change_of_the_step_is_there() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.get_or_create_global_step()
        mirror, rate = tf.get_variable("w", [], use_resource=False), rate_of_the_model()
        specs = {"w": VariableSpec(mirror, CPU, False), "schedule/rate": VariableSpec(rate, CPU, None)}
        found = ImportedUpdate(lambda: Raising(1.0), specs, CPU, changing=["schedule/rate"])
        rate = found.masters["schedule/rate"]
        found.publish = lambda: tf.assign(rate, rate.read_value() / 2).op
        update = found.apply_gradients([(tf.constant(1.0), found.masters["w"])])
        session.run([tf.assign(found.masters["w"], 0.0), tf.assign(rate, 1.0), found.global_step.initializer])
        for expected in (1.5, 1.75, 1.875):
            session.run(update)
            assert session.run(rate) == expected


def test_an_update_that_reads_nothing_of_the_models_own_waits_for_no_change() -> None:
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        mirrors = [tf.get_variable(name, [], use_resource=False) for name in ("w", "average")]
        specs = {each.op.name: VariableSpec(each, CPU, False if each is mirrors[0] else None) for each in mirrors}
        assert not ImportedUpdate(OPTIMIZERS["clipping"], specs, CPU, changing=["average"]).reads_changing
