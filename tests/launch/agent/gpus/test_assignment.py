"""GPUs are given as wished, never twice, and never ones that are not there."""

from typing import Dict, List

import pytest

from launch.agent.gpus import assignment
from launch.agent.gpus.assignment import Wish, give


@pytest.mark.parametrize(
    ("wishes", "available", "given"),
    [
        ({"a": [0, 2]}, 4, {"a": [0, 2]}),
        ({"a": "all"}, 3, {"a": [0, 1, 2]}),
        ({"a": "all"}, 0, {"a": []}),
        ({"a": []}, 4, {"a": []}),
        ({"a": "share", "b": "share"}, 4, {"a": [0, 1], "b": [2, 3]}),
        ({"a": "share", "b": "share"}, 5, {"a": [0, 1], "b": [2, 3]}),
        ({"a": "share", "b": "share"}, 1, {"a": [], "b": []}),
        ({"a": "share", "b": [1], "c": "share"}, 4, {"a": [0], "b": [1], "c": [2]}),
        ({"ps": [], "a": "share"}, 0, {"ps": [], "a": []}),
        ({}, 4, {}),
    ],
)
def test_wishes_come_first_and_the_rest_is_shared_equally(
    wishes: Dict[str, Wish], available: int, given: Dict[str, List[int]]
) -> None:
    assert give(wishes, available) == given


def test_a_gpu_that_is_not_there_is_refused_with_the_task_and_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"^worker:1: expected GPU 4, found 2 GPU\(s\) on this host$"):
        give({"worker:0": [0], "worker:1": [1, 4]}, 2)


@pytest.mark.parametrize(("wishes", "needs"), [({"a": [], "b": []}, False), ({"a": [], "b": "share"}, True)])
def test_gpus_are_listed_only_where_a_task_wants_some(wishes: Dict[str, Wish], needs: bool) -> None:
    assert assignment.needs_list(wishes) is needs


STEP = {"SLURM_STEP_ID": "0"}


@pytest.mark.parametrize(
    ("environ", "usable"),
    [
        ({}, [0, 1, 2, 3]),
        ({"CUDA_VISIBLE_DEVICES": "2,3"}, [0, 1, 2, 3]),  # of a login shell, which the launcher replaces for tasks
        (STEP, [0, 1, 2, 3]),
        ({**STEP, "CUDA_VISIBLE_DEVICES": "2,3"}, [2, 3]),
        ({**STEP, "CUDA_VISIBLE_DEVICES": "GPU-d,GPU-b"}, [3, 1]),
        ({**STEP, "CUDA_VISIBLE_DEVICES": "NoDevFiles"}, []),
        ({**STEP, "CUDA_VISIBLE_DEVICES": ""}, []),
        ({**STEP, "CUDA_VISIBLE_DEVICES": "3,4"}, [3]),
    ],
)
def test_in_a_step_of_slurm_the_gpus_are_those_of_the_step(environ: Dict[str, str], usable: List[int]) -> None:
    assert assignment.allotted(["GPU-a", "GPU-b", "GPU-c", "GPU-d"], environ) == usable


def test_tasks_share_the_gpus_of_the_step() -> None:
    environ, wishes = {**STEP, "CUDA_VISIBLE_DEVICES": "1,3"}, {"a": "share", "b": "share"}
    found = ["GPU-a", "GPU-b", "GPU-c", "GPU-d"]
    assert assignment.give_allotted(wishes, found, environ) == {"a": [1], "b": [3]}
    assert assignment.give_allotted({"a": [1]}, found, environ) == {"a": [3]}
    with pytest.raises(ValueError, match=r"^a: expected GPU 2, found 2 GPU\(s\) on this host$"):
        assignment.give_allotted({"a": [2]}, found, environ)
