"""The allocation around the launcher, and hosts that are not in it."""

from pathlib import Path
from typing import Dict

import pytest

from launch.errors import CannotStart, HostProblem, ProblemKind
from launch.fleet import Fleet
from launch.signals import Interrupts
from launch.slurm.srun import Allocation, find_allocation
from tests.support.launch.fakes import CODE, spec_of


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A folder with a program ``srun``."""
    (tmp_path / "srun").write_text("#!/bin/sh\n")
    (tmp_path / "srun").chmod(0o755)
    return str(tmp_path)


def test_the_nodes_of_the_job_are_those_of_the_environment(path: str) -> None:
    inside = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "gpu[01-02],cpu7", "PATH": path}
    assert find_allocation(inside) == Allocation("7", ("gpu01", "gpu02", "cpu7"))
    assert find_allocation({"SLURM_JOB_ID": "7", "PATH": path}) == Allocation("7")


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({}, "expected an allocation of Slurm (SLURM_JOB_ID), found none; start the launcher in an sbatch script"),
        ({"SLURM_JOB_ID": "7"}, "expected srun on PATH, found none"),
    ],
)
def test_without_an_allocation_nothing_begins(environ: Dict[str, str], told: str) -> None:
    with pytest.raises(HostProblem) as caught:
        find_allocation({"PATH": "/none", **environ})
    assert caught.value.kind is ProblemKind.HERE and told in str(caught.value)


def test_a_host_that_is_no_node_of_the_job_is_refused_by_name(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "gpu[01-02]", "PATH": path}.items():
        monkeypatch.setenv(name, value)
    spec = spec_of("worker:0@gpu01", "worker:1@gpu03", transport="slurm")
    fleet = Fleet(spec, dict.fromkeys(spec.hosts, "python3"), CODE, Interrupts())
    with fleet, pytest.raises(CannotStart) as caught:
        fleet.connect()
    assert str(caught.value) == (
        "gpu03: expected a node of Slurm's job 7, which has gpu[01-02]; "
        "write the names that Slurm uses into the hosts file; `launch import --slurm` does"
    )


@pytest.mark.parametrize("whole", ["", "cpu1", "cpu1,gpu1"])  # of salloc, of a batch script, of a step
def test_a_node_of_another_group_than_the_first_is_refused(path: str, whole: str) -> None:
    groups = {f"SLURM_JOB_NODELIST_HET_GROUP_{group}": node for group, node in enumerate(["cpu1", "gpu1"])}
    found = find_allocation({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": whole, "PATH": path, **groups})
    assert found.problem_of("cpu1") is None
    assert str(found.problem_of("gpu1")) == (
        "gpu1: expected a node of Slurm's job 7, which has cpu1 in group 0; "
        "transport: slurm reaches only that group; remove the key transport, to use SSH"
    )


def test_this_machine_needs_no_allocation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    spec = spec_of("worker:0@localhost", transport="slurm")
    with Fleet(spec, {"localhost": "python3"}, CODE, Interrupts()) as fleet:
        fleet.connect()
    with pytest.raises(HostProblem, match=r"^this machine: transport: slurm: expected an allocation"):
        Fleet(spec_of("worker:0@gpu01", transport="slurm"), {"gpu01": "python3"}, CODE, Interrupts())
