"""Hosts as MPI, Horovod, DeepSpeed and Slurm write them are read, and what cannot be is all listed."""

from pathlib import Path
from typing import Any, Dict, List

import pytest

from cluster.errors import SpecError
from launch.hostfile.import_formats import Listed, from_file, from_slurm, from_text


def read(folder: Path, *lines: str) -> List[Listed]:
    (folder / "hf").write_text("\n".join(lines) + "\n")
    return from_file(folder / "hf")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gpu01 slots=4", [("gpu01", 4)]),
        ("gpu01   slots = 4  # two boards", [("gpu01", 4)]),
        ("gpu01 slots=4 max_slots=8", [("gpu01", 4)]),
        ("gpu01 max-slots=8 slots=4", [("gpu01", 4)]),
        ("gpu01:4", [("gpu01", 4)]),
        ("gpu01", [("gpu01", None)]),
        ("10.0.0.1 slots=1", [("10.0.0.1", 1)]),
        ("fd00::1 slots=2", [("fd00::1", 2)]),
        ("gpu[01-02] slots=4", [("gpu01", 4), ("gpu02", 4)]),
    ],
)
def test_a_line_of_a_host_file_is_a_host_and_its_slots(tmp_path: Path, line: str, expected: List[Any]) -> None:
    assert read(tmp_path, "# the head", "", line) == expected


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("gpu01 slots=four", "expected a number of slots from 1 to 1024, found 'four'"),
        ("gpu01 slots=0", "expected a number of slots from 1 to 1024, found '0'"),
        ("gpu01 slots", "expected a number of slots from 1 to 1024, found ''"),
        ("gpu01:", "expected a number of slots from 1 to 1024, found ''"),
        ("gpu01 4", "expected HOST slots=N, found '4'"),
        ("gpu01 user=me", "expected HOST slots=N, found 'user=me' — user names belong into ssh.user of the hosts file"),
        ("me@gpu01 slots=4", "expected a host without a user, found 'me@gpu01'"),
        ("gpu01,gpu02 slots=4", "expected one host or one range, found 'gpu01,gpu02'"),
        (
            "gpu00 slots=2",
            "expected each host once, found a second 'gpu00' (the first is in line 1) — add the slots up",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_with_its_number(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(SpecError) as refused:
        read(tmp_path, "gpu00 slots=2", "# a comment", line)
    assert str(refused.value).startswith(f"{tmp_path}/hf:3:1: {problem}")


def test_every_bad_line_is_listed(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        read(tmp_path, "a slots=x", "b slots=1", "c slots=y")
    assert [problem.line for problem in refused.value.problems] == [1, 3]


def test_a_file_that_cannot_be_read_or_names_no_host_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="expected a text file that can be read, found no such file or directory"):
        from_file(tmp_path / "none")
    with pytest.raises(SpecError, match="hf: expected at least one host, found none"):
        read(tmp_path, "# nothing")


def test_horovods_list_is_read_and_refused_alike() -> None:
    assert from_text("gpu01:4,gpu[02,04]:2,gpu05") == [("gpu01", 4), ("gpu02", 2), ("gpu04", 2), ("gpu05", None)]
    with pytest.raises(SpecError, match=r"^--hosts: expected each host once, found a second 'a' — add"):
        from_text("a:1,a:2")


@pytest.mark.parametrize(
    ("variables", "slots"),
    [
        ({}, [None, None, None]),
        ({"TASKS_PER_NODE": "4(x2),3"}, [4, 4, 3]),
        ({"TASKS_PER_NODE": "1(x3)"}, [1, 1, 1]),
        ({"GPUS_ON_NODE": "4", "TASKS_PER_NODE": "1(x3)"}, [4, 4, 4]),
        ({"GPUS_PER_NODE": "a100:2", "GPUS_ON_NODE": "4"}, [2, 2, 2]),
        ({"GPUS_PER_NODE": "a100:2,h100:1"}, [3, 3, 3]),
        ({"JOB_GPUS": "0,1,4-7", "TASKS_PER_NODE": "1(x3)"}, [6, 6, 6]),
    ],
)
def test_slurms_nodes_have_the_gpus_that_it_gave_or_else_its_tasks(variables: Dict[str, str], slots: List[Any]) -> None:
    environ = {"SLURM_JOB_NODELIST": "gpu[01-02],n7", **{f"SLURM_{key}": text for key, text in variables.items()}}
    assert from_slurm(environ) == list(zip(["gpu01", "gpu02", "n7"], slots))


@pytest.mark.parametrize(
    ("variable", "text", "problem"),
    [
        ("SLURM_TASKS_PER_NODE", "4(x2)", "expected a count for each of the 3 nodes, found 2 in '4(x2)'"),
        ("SLURM_TASKS_PER_NODE", "4x2", "expected counts such as 4(x2),3, found '4x2'"),
        ("SLURM_JOB_GPUS", "all", "expected indices of GPUs such as 0,1 or 0-3, found 'all'"),
        ("SLURM_GPUS_ON_NODE", "many", "expected a number of slots from 1 to 1024, found 'many'"),
    ],
)
def test_a_variable_of_slurm_that_cannot_be_read_is_named(variable: str, text: str, problem: str) -> None:
    with pytest.raises(SpecError) as refused:
        from_slurm({"SLURM_JOB_NODELIST": "gpu[01-03]", variable: text})
    assert str(refused.value) == f"{variable}: {problem}"


def test_outside_of_an_allocation_it_is_told_where_to_run() -> None:
    with pytest.raises(SpecError, match="found nothing — run it inside of `salloc` or an sbatch script"):
        from_slurm({})
