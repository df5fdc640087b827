"""What lies ready to travel is cleared where it lies, and that adds little to a graph."""

from typing import Any, List

from cluster.runtime.devices import ps_device
from cluster.runtime.tf_compat import tf
from cluster.steps.exchange import Exchange
from cluster.variables.layout import Bucket
from cluster.variables.local_copies import LocalCopies
from cluster.variables.wire_format import Wire

HOST = "/job:worker/task:0/device:CPU:0"


def clearing(number: int) -> List[Any]:
    """The operations that clear so many outboxes, in 16 bits, on two servers."""
    buckets = [Bucket(index % 2, index // 2, (f"v{index}",)) for index in range(number)]
    shapes = {f"v{index}": (30 + index, 40) for index in range(number)}
    with tf.Graph().as_default() as graph, tf.device(HOST):
        copies = LocalCopies(buckets, shapes, HOST)
        copies.adopt([tf.get_variable(name, shape, use_resource=False) for name, shape in shapes.items()])
        exchange = Exchange(copies, Wire("bfloat16"))
        for bucket in buckets:
            exchange.prepare(bucket, tf.no_op())
        known = len(graph.get_operations())
        exchange.clear()
        return list(graph.get_operations())[known:]


def test_another_outbox_is_cleared_by_one_operation_more() -> None:
    assert len(clearing(10)) - len(clearing(4)) == 6


def test_what_clears_an_outbox_is_made_on_its_server() -> None:
    assert {op.device for op in clearing(4)} == {ps_device(0), ps_device(1)}
