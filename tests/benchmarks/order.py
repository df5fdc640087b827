"""What a fixed order of summation costs, on this machine: the sum of one push, by size.

Each is measured in turns with an accumulator for all workers and with one for each. Nothing is compared with one
process.
"""

import time
from typing import Any, List

ROUNDS = 4  # measurements of each kind
ITEMS = (1 << 10, 1 << 16, 1 << 20)  # float32 numbers in a push


def pushes() -> None:
    """Print how long it takes to give, add and apply one push of 4 and of 8 workers, at best."""
    for workers in (4, 8):
        for items in ITEMS:
            best = [min(_load_us(workers, items, in_order) for _ in range(ROUNDS)) for in_order in (False, True)]
            more = best[1] - best[0]
            print(
                f"{workers} workers, {items * 4 >> 10} KiB: {best[0]:.0f} us, in order {best[1]:.0f} us: {more:+.0f} us"
            )


def _load_us(workers: int, items: int, in_order: bool) -> float:
    """The time of the quickest tenth."""
    from cluster.runtime.tf_compat import tf

    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1)) as session:
        steps = _one_load(workers, items, in_order)
        session.run(tf.global_variables_initializer())
        took = []
        for _ in range(300):
            began = time.perf_counter()
            for step in steps:
                session.run(step)
            took.append((time.perf_counter() - began) * 1e6)
    return sorted(took)[len(took) // 10]


def _one_load(workers: int, items: int, in_order: bool) -> List[Any]:
    """What gives the gradients, and what adds and applies them."""
    from cluster.runtime.tf_compat import tf
    from cluster.steps.accumulators import Accumulator, Separate
    from cluster.steps.exchange import Exchange, plain_push
    from cluster.variables.local_copies import LocalCopies
    from cluster.variables.wire_format import Wire

    names = ["w", *(f"gradient_{worker}" for worker in range(workers))]
    w, *grads = [tf.get_variable(n, [items], initializer=tf.ones_initializer(), use_resource=False) for n in names]
    push = plain_push(grads[0].read_value(), w)
    exchange = Exchange(LocalCopies([], {}, ""), Wire(), in_order=in_order)
    if in_order:
        meeting: List[Any] = [
            Separate(push, worker, [worker] if worker else list(range(workers)), exchange) for worker in range(workers)
        ]
    else:
        meeting = [Accumulator(push, workers, exchange)] * workers
    given = [each.give(grad + 1.0, tf.constant(1 << 40, tf.int64)) for each, grad in zip(meeting, grads)]
    return [tf.group(*given), tf.assign_sub(w, meeting[0].take()).op]


if __name__ == "__main__":
    pushes()
