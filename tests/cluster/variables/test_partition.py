"""What is cut into slices: tables, what TensorFlow cannot send, and what would make one server the fullest."""

from typing import Dict, Tuple

import pytest

from cluster.variables.partition_count import best_slices
from cluster.variables.placement import (
    CHOICES,
    FEWEST_SLICES,
    LARGEST_SLICE,
    MOST_SLICES,
    SMALLEST_SLICE,
    Cut,
    assign,
    bytes_per_server,
    cuts,
    imbalance,
    piece_bytes,
    slice_sizes,
)
from cluster.variables.profile import VariableProfile
from jobs.synthetic import MODELS
from tests.cluster.variables.test_placement import vgg16

LONG = 100_000  # steps

MIB = 1 << 20


def dense(*shape: int) -> VariableProfile:
    return VariableProfile(shape, 4, is_dense=True)


def table(*shape: int) -> VariableProfile:
    return VariableProfile(shape, 4, lookups=100)


def flat(sizes: Dict[str, int]) -> Dict[str, VariableProfile]:
    return {name: dense(size // 4) for name, size in sizes.items()}


def placed(variables: Dict[str, VariableProfile], num_ps: int, slices: int = 64) -> Tuple[float, int]:
    """The fullest server over the mean, and how many variables and slices there are."""
    sizes = slice_sizes(variables, cuts(variables, num_ps, slices))
    assert sum(sizes.values()) == sum(variable.bytes for variable in variables.values())
    return imbalance(bytes_per_server(sizes, assign(sizes, num_ps), num_ps)), len(sizes)


@pytest.mark.parametrize("num_ps", [2, 3, 4, 8, 16])
def test_the_fullest_server_holds_at_most_a_fiftieth_over_the_mean_for_vgg_16(num_ps: int) -> None:
    balance, pieces = placed(flat(vgg16()), num_ps, FEWEST_SLICES)
    assert balance <= 1.02
    assert pieces <= len(vgg16()) + 4 * num_ps


@pytest.mark.parametrize("slices", CHOICES)
@pytest.mark.parametrize("num_ps", range(2, 17))
@pytest.mark.parametrize("model", MODELS)
def test_what_travels_whole_in_every_step_is_balanced_in_small_pieces(model: str, num_ps: int, slices: int) -> None:
    variables = {f"v{index}": dense(*shape) for index, shape in enumerate(MODELS[model]())}
    assert placed(variables, num_ps, slices)[0] <= 1.02
    sizes = slice_sizes(variables, cuts(variables, num_ps, slices))
    assert max(sizes.values()) <= 1.5 * piece_bytes(variables, num_ps, slices)  # a slice is of whole rows


def test_a_slower_network_is_given_more_slices_and_more_servers_fewer_each() -> None:
    assert best_slices(1.34, 0.05, 4, LONG) == 64
    assert best_slices(0.1, 0.05, 4, LONG) == 16
    assert best_slices(1.34, 0.05, 32, LONG) == 16
    assert best_slices(0.001, 0.05, 4, LONG) == FEWEST_SLICES


def test_a_short_run_is_given_fewer_as_all_wait_for_the_graph_before_it() -> None:
    assert [best_slices(1.34, 0.05, 4, steps) for steps in (1, 20, LONG)] == [4, 16, 64]


def test_where_processors_are_the_limit_slices_are_few() -> None:
    assert best_slices(0.03, 0.9, 2, LONG) == FEWEST_SLICES
    assert best_slices(1.34, 1.0, 4, LONG) == FEWEST_SLICES


def test_there_are_never_more_slices_than_a_graph_can_take() -> None:
    assert best_slices(100.0, 0.0, 2, LONG) == MOST_SLICES


def test_what_is_balanced_whole_in_small_pieces_is_not_cut_and_else_as_much_of_it_as_it_takes() -> None:
    equal = {f"v{index:02}": dense(32 << 10) for index in range(20)}
    assert cuts(equal, 4, FEWEST_SLICES) == {}
    assert cuts(dict([*equal.items()][:18]), 4, FEWEST_SLICES) == {"v00": Cut(0, 2), "v01": Cut(0, 2)}
    assert cuts({"w": dense(3, 1), "b": dense(1)}, 4) == {}


def test_what_no_step_sends_stays_whole_and_so_does_what_may_not_be_cut() -> None:
    assert cuts({"w": VariableProfile((3000, 128), 4)}, 4) == {}
    assert cuts({"w": VariableProfile((3000, 128), 4, is_dense=True, may_be_cut=False)}, 4) == {}
    assert cuts({"t": VariableProfile((10 * MIB, 16), 4, lookups=100, may_be_cut=False)}, 4) == {}


def test_a_table_is_cut_by_rows_over_all_servers_unless_slices_would_be_tiny() -> None:
    assert cuts({"t": table(10 * MIB, 16)}, 4) == {"t": Cut(0, 4)}
    assert cuts({"t": table(3 * SMALLEST_SLICE // 64, 16)}, 8) == {"t": Cut(0, 3)}
    assert cuts({"t": table(100, 16)}, 4) == {}


def test_what_tensorflow_cannot_send_in_one_piece_is_cut_even_for_one_server() -> None:
    found = cuts({"w": dense(3 << 10, MIB), "b": dense(MIB)}, 1, slices=1)
    assert found == {"w": Cut(0, 12)}
    assert max(slice_sizes({"w": dense(3 << 10, MIB)}, found).values()) <= LARGEST_SLICE


def test_a_table_larger_than_every_server_gets_equally_many_slices_on_each() -> None:
    variables = {"t": table(1000 * MIB, 32)}  # 125 GiB
    assert cuts(variables, 3)["t"].parts == 126
    assert placed(variables, 3)[0] < 1.0001


def test_the_longest_axis_is_cut_where_the_first_is_too_short() -> None:
    assert cuts({"w": dense(2, MIB)}, 4, slices=1) == {"w": Cut(1, 4)}


def test_slices_that_do_not_divide_differ_by_one_row() -> None:
    assert Cut(0, 4).lengths((10, 3)) == (3, 3, 2, 2)
    assert slice_sizes({"w": dense(10, 3)}, {"w": Cut(0, 4)}) == {
        "w/part_0": 36,
        "w/part_1": 36,
        "w/part_2": 24,
        "w/part_3": 24,
    }
