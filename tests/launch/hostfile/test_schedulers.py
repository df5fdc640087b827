"""The hosts of a batch job are those that its scheduler names, all of them, or none."""

from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

import pytest

from cluster.errors import SpecError
from launch.hostfile.import_formats import Listed
from launch.hostfile.schedulers import SCHEDULERS, Hosts, from_slurm

HET = {
    "SLURM_HET_SIZE": "2",
    "SLURM_JOB_NODELIST_HET_GROUP_0": "cpu[1-2]",
    "SLURM_JOB_NODELIST_HET_GROUP_1": "gpu[1-2]",
}
FIRST = {"SLURM_JOB_NODELIST": "cpu[1-2]", "SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_GPUS_ON_NODE": "1"}


def refused(scheduler: str, environ: Mapping[str, str]) -> str:
    with pytest.raises(SpecError) as caught:
        SCHEDULERS[scheduler](environ)
    return str(caught.value)


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
    found = from_slurm(environ)
    assert [each[:2] for each in found.workers] == list(zip(["gpu01", "gpu02", "n7"], slots)) and found.ps is None


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
    with pytest.raises(SpecError, match="found nothing — run it in `salloc` or an sbatch script"):
        from_slurm({})


@pytest.mark.parametrize("around", [{}, FIRST])  # in a batch script, the names without a group mean group 0
@pytest.mark.parametrize(
    ("variables", "slots"),
    [
        ({}, [None, None]),
        ({"TASKS_PER_NODE_HET_GROUP_0": "1(x2)", "TASKS_PER_NODE_HET_GROUP_1": "2,3"}, [2, 3]),
        ({"GPUS_PER_NODE_HET_GROUP_1": "4", "TASKS_PER_NODE_HET_GROUP_1": "1(x2)"}, [4, 4]),
    ],
)
def test_a_heterogeneous_job_has_its_ps_in_group_0(
    around: Dict[str, str], variables: Dict[str, str], slots: List[Any]
) -> None:
    environ = {**around, **HET, **{f"SLURM_{key}": text for key, text in variables.items()}}
    workers = [Listed(node, number) for node, number in zip(["gpu1", "gpu2"], slots)]
    assert from_slurm(environ) == Hosts(workers, ["cpu1", "cpu2"])
    older = {key.replace("_HET_", "_PACK_"): text for key, text in environ.items()}
    assert from_slurm(older) == from_slurm(environ)
    assert from_slurm({**environ, **older}) == from_slurm(environ)  # newer versions of Slurm set both


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"SLURM_HET_SIZE": "3", "SLURM_JOB_NODELIST_HET_GROUP_2": "big"}, "3"),
        ({"SLURM_HET_SIZE": "3"}, "3"),
        ({"SLURM_HET_SIZE": None, "SLURM_JOB_NODELIST_HET_GROUP_2": "big"}, "3"),
        ({"SLURM_HET_SIZE": None, "SLURM_JOB_NODELIST_HET_GROUP_1": None}, "1"),
        ({"SLURM_JOB_NODELIST_HET_GROUP_0": None, "SLURM_JOB_NODELIST_HET_GROUP_1": None}, "2"),
    ],
)
def test_another_number_of_groups_is_refused(change: Mapping[str, Optional[str]], found: str) -> None:
    environ = {key: text for key, text in {**FIRST, **HET, **change}.items() if text is not None}
    assert refused("slurm", environ) == (
        f"SLURM_HET_SIZE: expected two groups, the ps in group 0 and the workers in group 1, found {found} — "
        "`salloc -N1 : -N4` makes two; else write a host file, and import it"
    )


def test_a_group_without_nodes_or_with_unreadable_slots_is_refused() -> None:
    empty = refused("slurm", {**HET, "SLURM_JOB_NODELIST_HET_GROUP_1": ""})
    assert empty.startswith("SLURM_JOB_NODELIST_HET_GROUP_1: expected the nodes of an allocation, found nothing")
    wrong = refused("slurm", {**HET, "SLURM_GPUS_PER_NODE_HET_GROUP_1": "x"})
    assert wrong == "SLURM_GPUS_PER_NODE_HET_GROUP_1: expected a number of slots from 1 to 1024, found 'x'"


GRID = """\
gpu01 2 all.q@gpu01 UNDEFINED
gpu02 1 all.q@gpu02 <NULL>
gpu01 3 gpu.q@gpu01 0,1
"""


@pytest.mark.parametrize(
    ("scheduler", "variable", "text", "slots"),
    [
        ("pbs", "PBS_NODEFILE", "gpu01\ngpu01\ngpu02\ngpu01\n", {"gpu01": 3, "gpu02": 1}),
        ("pbs", "PBS_NODEFILE", "gpu02\ngpu01\n", {"gpu02": 1, "gpu01": 1}),
        ("sge", "PE_HOSTFILE", GRID, {"gpu01": 5, "gpu02": 1}),
        ("lsf", "LSB_DJOB_HOSTFILE", "gpu01\ngpu02\ngpu01\n", {"gpu01": 2, "gpu02": 1}),
    ],
)
def test_the_file_of_a_job_has_its_hosts_and_slots(
    tmp_path: Path, scheduler: str, variable: str, text: str, slots: Dict[str, int]
) -> None:
    (tmp_path / "hosts").write_text(text)
    found = SCHEDULERS[scheduler]({variable: str(tmp_path / "hosts")})
    assert found == Hosts([Listed(host, number) for host, number in slots.items()])


def test_lsf_names_hosts_and_slots_in_one_variable() -> None:
    environ = {"LSB_MCPU_HOSTS": "gpu01 4 gpu02 2 gpu01 1 ", "LSB_DJOB_HOSTFILE": "/not/read"}
    assert SCHEDULERS["lsf"](environ) == Hosts([Listed("gpu01", 5), Listed("gpu02", 2)])


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        (
            "pbs",
            "PBS_NODEFILE: expected the file with a job's hosts, found nothing — run this command in the script of a",
        ),
        ("sge", "PE_HOSTFILE: expected the file with a job's hosts, found nothing — run this command in the script"),
        ("lsf", "LSB_MCPU_HOSTS: expected a job's hosts and their slots, found nothing — run this command in the"),
    ],
)
def test_outside_of_a_job_each_reports_where_to_run(scheduler: str, message: str) -> None:
    assert refused(scheduler, {}).startswith(message)


@pytest.mark.parametrize(
    ("scheduler", "variable", "text", "message"),
    [
        ("pbs", "PBS_NODEFILE", "gpu01\ngpu01 4\n", ":2:1: expected a host such as gpu01"),
        ("pbs", "PBS_NODEFILE", "", ": expected at least one host, found none"),
        ("sge", "PE_HOSTFILE", "gpu01 4 q\ngpu02\n", ":2:1: expected a number of slots from 1 to 1024, found ''"),
        ("sge", "PE_HOSTFILE", "gpu01 all.q 4\n", ":1:1: expected a number of slots from 1 to 1024, found 'all.q'"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused(
    tmp_path: Path, scheduler: str, variable: str, text: str, message: str
) -> None:
    (tmp_path / "hosts").write_text(text)
    assert refused(scheduler, {variable: f"{tmp_path}/hosts"}).startswith(f"{tmp_path}/hosts{message}")
    assert refused(scheduler, {variable: f"{tmp_path}/no"}).startswith(f"{tmp_path}/no: expected a text file that can")


def test_half_a_pair_of_lsf_is_refused() -> None:
    assert refused("lsf", {"LSB_MCPU_HOSTS": "gpu01 4 gpu02"}) == (
        "LSB_MCPU_HOSTS: expected a number of slots from 1 to 1024, found ''"
    )
