"""The reference: the job ``drawn`` in one process of plain TensorFlow, with a variable for each table.

A table's variable has the rows of all ids that can come, of which those count that did come.
"""

from typing import Any, Dict, List, Tuple

import numpy as np

from cluster.embedding import Table
from cluster.runtime.tf_compat import tf
from cluster.updates.grouped import Grouped
from tests.cluster.recommend.tables import plain
from tests.support.training.jobs import drawn

Rows = Dict[str, Dict[int, np.ndarray]]  # of tables, by id


class _Tables:
    """Tables whose ids are known before; a lookup searches for an id's place among them."""

    def __init__(self, ids: List[int]):
        self.ids = np.array(ids)
        self.variables: Dict[str, Any] = {}
        self.seen: Dict[str, Any] = {}  # the values that a step looks up, where they are not the newest
        self.taken: List[Tuple[str, Any]] = []

    def lookup(self, table: Table, ids: Any, combiner: Any) -> Any:
        if table.name not in self.variables:
            rows = [plain.first_row_of(table.name, table.width, table.initializer, int(each)) for each in self.ids]
            first = np.array(rows, np.float32)
            self.variables[table.name] = tf.get_variable(table.name, initializer=first, use_resource=False)
            self.seen[table.name] = tf.placeholder(tf.float32, first.shape)
        is_sparse = isinstance(ids, tf.SparseTensor)
        values = ids.values if is_sparse else ids
        if values.dtype == tf.string:
            values = tf.strings.to_hash_bucket_fast(values, (1 << 63) - 1)
        self.taken.append((table.name, values))
        places = tf.reshape(tf.searchsorted(self.ids, tf.reshape(tf.cast(values, tf.int64), [-1])), tf.shape(values))
        newest = tf.gather(self.variables[table.name], places)
        rows = newest + tf.stop_gradient(tf.gather(self.seen[table.name], places) - newest)
        if combiner is None:
            return rows
        if is_sparse:
            has = tf.scatter_nd(ids.indices, tf.ones_like(values, tf.float32), ids.dense_shape)
            rows = tf.scatter_nd(ids.indices, rows, tf.concat([ids.dense_shape, [table.width]], 0))
            number = tf.maximum(tf.reduce_sum(has, 1, keepdims=True), 1.0)
        else:
            number = tf.constant(float(drawn.BAG))
        return tf.reduce_sum(rows, 1) / {"sum": 1.0, "mean": number, "sqrtn": tf.sqrt(number)}[combiner]


class _Rows:
    """The rows of one table by the rules for them, as arrays in the order of all ids."""

    def __init__(self, table: Table, variable: Any, slots: List[Any], session: Any):
        self._table, self._session = table, session
        self._first = [(each, session.run(each)) for each in (variable, *slots)]
        self.counts, self.used = (np.zeros(len(self._first[0][1]), np.int64) for _ in range(2))

    def expire(self, step: int) -> None:
        if self._table.expire:
            over = (self.used > 0) & (step - self.used > self._table.expire)
            self.used[over] = self.counts[over] = 0
            self._reset(over)

    def note(self, places: np.ndarray, step: int) -> None:
        has = np.isin(np.arange(len(self.used)), places)
        self.counts[has] += 1
        self.used[has & (self.counts >= self._table.admit)] = step
        self._reset(has & (self.used == 0))

    def _reset(self, which: np.ndarray) -> None:
        for variable, first in self._first:
            if which.any():
                variable.load(np.where(which[:, np.newaxis], first, self._session.run(variable)), self._session)


def train(args: Dict[str, Any], batch: int, steps: int, staleness: int = 0) -> Tuple[Rows, Dict[str, np.ndarray]]:
    """The rows that ids have, and the variables of the dense part, after so many batches.

    A step looks up the rows as they were so many steps before.
    """
    values = drawn.examples(args, args["steps"] * batch)
    ids = [plain.identities(each) for name, each in values.items() if name != "y"]
    tables = _Tables(sorted(set(np.concatenate([each.ravel() for each in ids]).tolist()) | set(range(5))))
    # A resource's value stays what a step has read, whichever gradient is applied first. With a configuration,
    # TensorFlow rewrites the graph, as for users.
    session = tf.Session(graph=tf.Graph(), config=tf.ConfigProto())
    with session.graph.as_default(), tf.variable_scope("", use_resource=True), session:
        feeds = {name: tf.placeholder(each.dtype, [batch, *each.shape[1:]]) for name, each in values.items()}
        loss = tf.reduce_mean(drawn.losses(args["seed"], args["dense"], tables.lookup, feeds))
        optimizer = drawn.optimizer(args)
        minimize = _minimize(loss, optimizer)
        session.run(tf.global_variables_initializer())
        known = {each.name: each for each in drawn.tables(args["seed"])}
        rules = {
            name: _Rows(known[name], each, _slots(optimizer, each), session) for name, each in tables.variables.items()
        }
        history: List[Dict[str, np.ndarray]] = []
        for step in range(1, steps + 1):
            begin = (step - 1) % args["steps"] * batch
            feed = {feeds[name]: each[begin : begin + batch] for name, each in values.items()}
            for each in rules.values():
                each.expire(step)
            history.append(session.run(tables.variables))
            seen = history[max(step - 1 - staleness, 0)]
            feed.update({tables.seen[name]: value for name, value in seen.items()})
            taken, _ = session.run([[ids for _, ids in tables.taken], minimize], feed)
            for name, rule in rules.items():
                ids = np.concatenate([found.ravel() for of, found in zip(tables.taken, taken) if of[0] == name])
                rule.note(np.searchsorted(tables.ids, ids), step)
        for rule in rules.values():
            rule.expire(steps + 1)
        rows = {name: dict(zip(tables.ids.tolist(), session.run(each))) for name, each in tables.variables.items()}
        dense = {each.op.name: session.run(each) for each in tf.trainable_variables() if each.op.name not in rows}
    return {
        name: {each: rows[name][each] for each in tables.ids[rules[name].used > 0].tolist()} for name in rows
    }, dense


def _slots(optimizer: Any, variable: Any) -> List[Any]:
    parts = optimizer.parts.values() if isinstance(optimizer, Grouped) else [optimizer]
    found = [part.get_slot(variable, name) for part in parts for name in part.get_slot_names()]
    return [each for each in found if each is not None]


def _minimize(loss: Any, optimizer: Any) -> Any:
    """One step: of each optimizer for the variables of its own."""
    variables = tf.trainable_variables()
    grads = dict(zip([each.op.name for each in variables], tf.gradients(loss, variables)))
    parts = optimizer.parts if isinstance(optimizer, Grouped) else {"": optimizer}
    of = {each.op.name: "wide" if each.op.name.startswith("wide/") and "wide" in parts else "" for each in variables}
    applied = [
        part.apply_gradients([(grads[each.op.name], each) for each in variables if of[each.op.name] == name])
        for name, part in parts.items()
        if name in of.values()
    ]
    return tf.group(*applied)
