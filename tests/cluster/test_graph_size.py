"""What a graph costs to build: a worker's does not grow with the number of workers, a chief's little."""

import pytest

from tests.benchmarks.graphs import Size, size

SHAPES = [[400, 300], [300, 7], [7]]


def of(workers: int, index: int) -> Size:
    return size(2, workers, index, 4, SHAPES)


def test_a_workers_graph_has_as_many_operations_however_many_workers_there_are() -> None:
    assert of(2, 1).operations == of(9, 1).operations


def test_a_chiefs_has_some_queues_more_for_each_worker_and_nothing_for_each_load() -> None:
    few, many = of(2, 0), of(9, 0)
    assert few.pushes == many.pushes > 8
    # A queue of tokens on each of two ps, and one for the step, which is filled in three ways and emptied.
    assert many.operations - few.operations <= 7 * (2 + 10)


@pytest.mark.parametrize("index", [0, 1])
def test_a_slice_more_adds_little(index: int) -> None:
    few, many = size(2, 2, index, 4, SHAPES), size(2, 2, index, 16, [[800, 600], [300, 7], [7]])
    assert (many.operations - few.operations) / (many.pushes - few.pushes) < (31, 18)[index]
