"""How few parameter servers would do: found with the placement that training uses."""

from typing import Dict, List

import pytest

from cluster.task import Task, Train
from cluster.variables.profile import VariableProfile
from jobs.describe import describe, fewest, pulled

MIB = 1 << 20


def model(*shapes: List[int]) -> Dict[str, VariableProfile]:
    """Variables v0, v1, … of float32, each trained and read whole."""
    return {f"v{index}": VariableProfile(tuple(shape), 4, is_dense=True) for index, shape in enumerate(shapes)}


def few(variables: Dict[str, VariableProfile], share: float) -> int:
    return fewest(lambda number: max(pulled(variables, set(variables), number)), share)


def test_a_model_that_can_be_cut_needs_as_many_ps_as_its_workers_cards_carry() -> None:
    large = model([4096, 4096], [4096, 1024], [1024])
    assert [few(large, 1 / workers) for workers in (1, 2, 4, 7)] == [1, 2, 4, 7]


def test_several_workers_on_a_host_share_its_card_so_that_fewer_ps_do() -> None:
    assert few(model([4096, 4096]), share=2 / 8) == 4


def test_more_ps_than_a_small_model_has_pieces_would_not_help() -> None:
    small = model([100], [100], [60], [40])  # three ps: 100, 100, 100; more leave the largest whole
    assert few(small, share=1 / 16) == 3


def test_no_smaller_number_would_do() -> None:
    """Against every number, one by one."""
    for variables in (model([512, 1024], [700, 700], [64]), model([3000, 3000], *[[300, 300]] * 40)):
        least = min(max(pulled(variables, set(variables), number)) for number in range(1, 21))
        total = sum(each.bytes for each in variables.values())
        enough = 1.02 * max(least, 0.1 * total)
        expected = next(n for n in range(1, 21) if max(pulled(variables, set(variables), n)) <= enough)
        assert few(variables, share=0.1) == expected


def test_of_a_table_the_rows_of_a_step_count_and_of_what_is_not_trained_nothing() -> None:
    variables = {"table": VariableProfile((MIB, 16), 4, lookups=1024), "mean": VariableProfile((1000,), 4)}
    assert pulled(variables, {"table"}, 1) == [1024 * 64]
    assert pulled(variables, {"table"}, 4) == [256 * 64] * 4
    assert pulled(variables, {"table", "mean"}, 1) == [1024 * 64 + 4000]


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_one_ps_does_where_one_worker_reads(share: float) -> None:
    assert few(model([1]), share) == 1


def test_a_model_for_gpus_is_described_on_a_machine_without_any() -> None:
    task = Task("worker", 0, {"ps": ["a:1"], "worker": ["b:1", "c:1"]})
    found = [describe("polynomial", task, Train(towers=2, tower_sum=where), {}, 1.0) for where in ("worker", "nccl")]
    assert found[0] == found[1] and found[0]["overlapped"]
