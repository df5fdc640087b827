"""What is imported is a right hosts file, with ranges only where they mean the same hosts in the same order."""

from pathlib import Path
from typing import List, Optional

import pytest

from cluster.spec import Spec, load
from launch.errors import UsageError
from launch.hostfile.import_formats import Listed
from launch.hostfile.schedulers import Hosts
from launch.hostfile.writer import KINDS, only_user, ssh_configuration, written

JOB = {"job": "digits"}

FOUR = [Listed("gpu01", 4), Listed("gpu02", 4), Listed("gpu03", 2), Listed("gpu04", None)]


def spec_of(
    folder: Path, listed: List[Listed], kind: str = "gpus", ps: int = 1, ps_hosts: Optional[str] = None
) -> Spec:
    (folder / "r.yaml").write_text(written("hf", JOB, Hosts(listed), kind, ps, ps_hosts))
    return load(folder / "r.yaml")


def tasks(spec: Spec) -> List[str]:
    return [f"{task.name}@{task.host}" for task in spec.tasks]


def test_a_slot_is_a_gpu_of_the_hosts_one_worker(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, FOUR, ps=2)
    assert tasks(spec) == [
        "ps:0@gpu01", "ps:1@gpu02", "worker:0@gpu01", "worker:1@gpu02", "worker:2@gpu03", "worker:3@gpu04",
    ]  # fmt: skip
    assert [task.gpus for task in spec.tasks_of("worker")] == [(0, 1, 2, 3), (0, 1, 2, 3), (0, 1), "share"]


def test_a_slot_may_be_a_worker_with_a_gpu_of_its_own(tmp_path: Path) -> None:
    workers = spec_of(tmp_path, FOUR[1:3], "workers").tasks_of("worker")
    assert [(task.host, task.gpus) for task in workers] == [
        *(("gpu02", (n,)) for n in range(4)),
        *(("gpu03", (n,)) for n in range(2)),
    ]


def test_slots_that_are_cores_do_not_count(tmp_path: Path) -> None:
    assert [task.gpus for task in spec_of(tmp_path, FOUR, "cores").tasks_of("worker")] == [(), (), (), ()]


def test_the_ps_may_have_hosts_of_their_own(tmp_path: Path) -> None:
    assert tasks(spec_of(tmp_path, FOUR[:1], ps_hosts="cpu[01,03],big")) == [
        "ps:0@cpu01", "ps:1@cpu03", "ps:2@big", "worker:0@gpu01",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "names",
    [
        ["gpu03", "gpu01", "gpu02"],  # the first one is the chief's
        ["n1", "n01", "n2"],
        ["rack1n1", "rack1n2", "rack2n1", "rack2n2"],
        ["10.0.0.9", "10.0.0.10"],
        ["null", "true"],  # which YAML would take for something else
        ["fd00::1", "fd00::2"],
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_hosts_are_those_of_the_list_in_its_order_however_they_are_folded(
    tmp_path: Path, names: List[str], kind: str
) -> None:
    spec = spec_of(tmp_path, [Listed(name, 1) for name in names], kind, ps=len(names))
    assert [task.host for task in spec.tasks_of("ps")] == names
    assert [task.host for task in spec.tasks_of("worker")] == names


def test_equal_neighbours_are_one_line() -> None:
    text = written("hf", JOB, Hosts([Listed(f"gpu{n:03}", 8) for n in range(1, 901)]), "gpus", 1)
    assert text.splitlines()[5:] == ['    - {host: "gpu[001-900]", gpus: 8}']


def test_more_ps_than_hosts_are_refused() -> None:
    with pytest.raises(UsageError, match="--ps: expected at most one ps on each of the 4 hosts, found 5; see"):
        written("hf", JOB, Hosts(FOUR), "gpus", 5)


def test_what_would_be_refused_later_is_not_printed() -> None:
    with pytest.raises(UsageError) as refused:
        written("hf", JOB, Hosts([Listed("localhost", 1), Listed("gpu01", 1)]), "gpus", 1)
    assert "the generated hosts file is invalid:\nthe hosts file:" in str(refused.value)
    assert "an address that the other hosts can reach" in str(refused.value)
    with pytest.raises(UsageError, match="found 'cpu 1'"):
        written("hf", JOB, Hosts(FOUR), "gpus", 1, "cpu 1")


def test_workers_of_a_program_share_the_gpus_of_their_host() -> None:
    text = written("hf", {"command": ["python", "m.py", "--name=a b", "é", "yes"]}, Hosts(FOUR[2:]), "processes")
    assert text.splitlines()[1:] == [
        'command: ["python", "m.py", "--name=a b", "\\xE9", "yes"]',
        "cluster:",
        "  worker:",
        '    - {host: "gpu03", count: 2}',
        '    - {host: "gpu04"}',
    ]


def test_the_group_of_the_ps_has_no_workers(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(written("Slurm", JOB, Hosts(FOUR[:2], ["cpu1", "cpu2"]), "gpus", 1))
    assert tasks(load(tmp_path / "r.yaml")) == ["ps:0@cpu1", "ps:1@cpu2", "worker:0@gpu01", "worker:1@gpu02"]


def test_one_user_of_all_hosts_is_in_the_file(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, [Listed("a", 1, "CORP\\me"), Listed("b", 1, "CORP\\me")])
    assert spec.ssh.user == "CORP\\me"


@pytest.mark.parametrize(("users", "ps_hosts"), [(["me", "you"], None), (["me", None], None), (["me", "me"], "cpu1")])
def test_a_user_of_some_hosts_is_for_the_ssh_configuration(
    tmp_path: Path, users: List[Optional[str]], ps_hosts: Optional[str]
) -> None:
    listed = [Listed(host, 1, user) for host, user in zip("ab", users)]
    assert spec_of(tmp_path, listed, ps_hosts=ps_hosts).ssh.user is None
    assert only_user(listed) == (None if ps_hosts is None else "me")


def test_the_ssh_configuration_names_each_user_once() -> None:
    listed = [Listed("a", 1, "me"), Listed("b", 1, "you"), Listed("c", 1), Listed("d", None, "me")]
    assert ssh_configuration(listed) == ["Host a d", "    User me", "Host b", "    User you"]
