"""`launch plan` for a person: what is alike is one line, and the numbers are said in words."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List

import pytest
from rich.console import Console

from cluster.protocol.settings import Container, Hook
from launch.plan import estimate
from launch.plan.outlook import Balanced, Bound, Network, Outlook, PlannedTask, PsContent, TaskTraffic, Variables
from launch.plan.text_view import container_line, hook_lines, overview, sentences, whole_task
from tests.launch.plan.plans import plan_of, read

BARE = Outlook("r", "gpu01", None)


def lines_of(folder: Path, text: str, **values: Any) -> List[str]:
    """The overview of a hosts file, as a wide terminal shows it."""
    console = Console(file=io.StringIO(), width=300)
    for part in overview(plan_of(read(folder, text)), replace(BARE, **values), "r.yaml"):
        console.print(part)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def network(bound: Any, step_s: float, balanced_s: float = 1.0, ps: int = 4) -> Network:
    limiting = None if bound is None else Bound(**bound)
    return Network(10.0, step_s, limiting, Balanced(ps, balanced_s), [])


def said(of: Any, number: int = 2, mode: str = "sync", **variables: Any) -> List[str]:
    known = replace(Variables(438_000_000, 1.004, []), **variables)
    return list(sentences(number, known, of, mode))


# -- tasks


def test_the_first_line_says_how_many_tasks_run_where(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, 'command: [a]\ncluster: {ps: [cpu01], worker: ["gpu[01-03]"]}')
    assert lines[0] == "r: 4 tasks on cpu01,gpu[01-03]; lead agent on gpu01"


def test_tasks_that_differ_only_by_host_and_number_are_one_line(tmp_path: Path) -> None:
    text = """
python: /opt/python
command: [a]
cluster:
  ps: ["cpu[01-02]"]
  worker: [{host: "gpu[001-300]", port: 2300, count: 2, gpus: 1}]
"""
    rows = [line.split() for line in lines_of(tmp_path, text)[2:6]]
    assert rows == [
        ["tasks", "hosts", "addresses", "gpus", "python"],
        ["ps:[0-1]", "cpu[01-02]", "cpu[01-02]:2222", "none", "/opt/python"],
        ["worker:[0-598/2]", "gpu[001-300]", "gpu[001-300]:2300", "0", "/opt/python"],
        ["worker:[1-599/2]", "gpu[001-300]", "gpu[001-300]:2301", "1", "/opt/python"],
    ]


def test_addresses_of_another_network_are_shown_as_the_tasks_use_them(tmp_path: Path) -> None:
    text = 'command: [a]\ncluster: {worker: [{host: "gpu[1-3]", address: "10.0.0.[1-3]", gpus: all}]}'
    assert lines_of(tmp_path, text)[3].split() == ["worker:[0-2]", "gpu[1-3]", "10.0.0.[1-3]:2222", "all", "python3.7"]


def test_an_address_of_ipv6_is_shown_with_its_brackets(tmp_path: Path) -> None:
    text = 'command: [a]\ncluster: {worker: [{host: gpu1, address: "fd00::1", gpus: [0]}]}'
    assert lines_of(tmp_path, text)[3].split()[:3] == ["worker:0", "gpu1", "[fd00::1]:2222"]


def test_the_overview_says_how_a_single_task_is_shown(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, "command: [a]\ncluster: {worker: [gpu1, gpu2]}")
    assert "`launch plan r.yaml worker:1` shows a task's command, environment and log" in lines


def test_a_task_is_shown_with_its_command_as_a_shell_takes_it_and_its_environment_by_name() -> None:
    argv, env = ["a b", "$c"], {"B": "2 3", "A": "1"}
    task = PlannedTask(
        "worker", 1, "gpu02", "gpu02:2300", [0, 1], False, argv, env, {"memory_gib": 0.5, "nofile": 1048576}, "/l"
    )
    assert list(whole_task(task)) == [
        "worker:1 on gpu02",
        "  address  gpu02:2300",
        "  gpus     0,1",
        "  limits   memory_gib 0.5, nofile 1048576",
        "  log      /l",
        "  command  'a b' '$c'",
        "  env      A=1",
        "           B='2 3'",
    ]


def test_a_receiver_of_several_events_is_one_line_without_a_password(tmp_path: Path) -> None:
    hooks = (Hook("failed", url="{CHAT_URL}"), Hook("failed", ("page", "on call")), Hook("stopped", url="{CHAT_URL}"))
    spec = replace(read(tmp_path, "command: [a]\ncluster: {worker: [gpu01]}"), hooks=hooks)
    assert hook_lines(estimate.hooks(plan_of(spec)), "gpu01") == [
        "on failed, stopped: POST {CHAT_URL} from gpu01", "on failed: page 'on call' on gpu01",
    ]  # fmt: skip
    (shown,) = estimate.hooks(plan_of(replace(spec, hooks=(Hook("failed", url="https://me:hunter2@h/"),))))
    assert shown.url == "https://(secret)@h/"


# -- variables and the network


def placed(sizes: List[int], **values: Any) -> Dict[str, Any]:
    mean = sum(sizes) / len(sizes)
    tasks = [TaskTraffic(f"ps:{i}", 5000, 5000) for i in range(len(sizes))]
    return {
        "placement": [PsContent(f"ps:{i}", size, ["v"] * 3) for i, size in enumerate(sizes)],
        "variables": Variables(sum(sizes), max(sizes) / mean, []),
        "network": replace(network(None, 0.0), tasks=tasks),
        **values,
    }


def test_every_ps_has_a_line_with_what_it_holds_and_moves(tmp_path: Path) -> None:
    text = "job: digits\ncluster: {ps: [cpu01, cpu02], worker: [gpu01]}"
    lines = lines_of(tmp_path, text, **placed([3_000_000, 1_000_000]))
    at = next(index for index, line in enumerate(lines) if line.startswith("ps "))
    assert lines[at].split() == [
        "ps", "host", "holds", "of", "the", "mean", "variables", "out", "and", "in", "a", "step",
    ]  # fmt: skip
    assert lines[at + 1].split() == ["ps:0", "cpu01", "3.00", "MB", "1.50", "3", "5.00", "kB"]
    assert lines[at + 2].split() == ["ps:1", "cpu02", "1.00", "MB", "0.50", "3", "5.00", "kB"]


def test_of_many_ps_the_fullest_and_the_emptiest_are_shown(tmp_path: Path) -> None:
    text = 'job: digits\ncluster: {ps: ["cpu[001-100]"], worker: [gpu01]}'
    lines = lines_of(tmp_path, text, **placed([1000 + index for index in range(100)]))
    rows = [line.split()[0] for line in lines if line.startswith(("ps:", "… "))]
    assert rows == ["ps:[0-99]", "ps:99", "ps:98", "ps:97", "…", "ps:2", "ps:1", "ps:0"]
    assert "… 94 more" in lines


def test_in_graph_the_bytes_on_each_ps_are_shown_without_a_network_time(tmp_path: Path) -> None:
    text = "job: digits\ncluster: {ps: [cpu01], worker: [gpu01]}"
    lines = lines_of(tmp_path, text, **placed([5000], network=None), remarks=["why not"])
    assert not [line for line in lines if line.startswith("network")]
    assert lines[-1] == "note: why not"


def test_a_step_is_bound_by_a_card_that_is_named_with_what_it_carries() -> None:
    bound = {"host": "cpu01", "tasks": ["ps:0"], "direction": "out", "bytes": 876_000_000}
    assert said(network(bound, 1.4, 0.7)) == [
        "variables: 438 MB including the optimizer's, on 2 ps; the fullest ps holds 1.00 times the mean",
        "network: a step takes at least 1.40 s at 10 Gbit/s, limited by cpu01's network card: "
        "876 MB out, then 876 MB in, for ps:0",
        "balance: with 4 ps on hosts of their own, a step takes 700 ms; more ps do not shorten it",
    ]


def test_a_host_of_workers_is_named_the_other_way_round() -> None:
    bound = {"host": "gpu1", "tasks": [f"worker:{i}" for i in range(8)], "direction": "in", "bytes": 1000}
    told = said(network(bound, 1.0, 1.0), mode="async")
    assert "a step of every worker takes at least 1.00 s" in told[1]
    assert told[1].endswith("gpu1's network card: 1.00 kB in, then 1.00 kB out, for worker:0, worker:1, 6 more")
    assert told[2] == "balance: more ps, or more hosts for them, do not shorten a step"


@pytest.mark.parametrize(
    ("ps", "text"),
    [
        (1, "balance: with 1 ps on a host of its own, a step takes 500 ms; more ps do not shorten it"),
        (2, "balance: with 2 ps on hosts of their own, a step takes 500 ms; more ps do not shorten it"),
    ],
)
def test_ps_that_share_hosts_with_workers_may_be_better_on_their_own(ps: int, text: str) -> None:
    bound = {"host": "gpu1", "tasks": ["ps:0"], "direction": "out", "bytes": 1000}
    assert said(network(bound, 1.0, 0.5, ps))[-1] == text


def test_where_nothing_leaves_the_host_there_is_nothing_to_balance() -> None:
    assert said(network(None, 0.0))[1:] == ["network: nothing leaves the host"]


def test_a_table_is_told_with_the_rows_that_a_step_needs_of_it() -> None:
    table = {
        "name": "table",
        "rows": 10_000_000,
        "rows_per_step": 1664,
        "bytes": 640_000_000,
        "bytes_per_step": 106_496,
    }
    assert said(network(None, 0.0), tables=[table])[1] == (
        "table table: 10,000,000 rows, 640 MB; a worker reads at most 1,664 rows per step, 106 kB"
    )


def test_spares_have_a_line_of_their_own(tmp_path: Path) -> None:
    text = "job: digits\npython: /p\ncluster: {ps: [a, b], worker: [c]}\nspares: [d]\nelastic: {min_workers: 1}"
    rows = [line.split() for line in lines_of(tmp_path, text)[3:5]]
    assert rows == [
        ["ps:[0-1]", "a,b", "a,b:2222", "none", "/p"],
        ["ps:2", "(spare)", "d", "d:2222", "none", "/p"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("container", "line"),
    [
        (Container("/t.sif"), "each task runs in the image /t.sif with apptainer"),
        (Container("tf"), "each task runs in the image tf with podman or docker, whichever has the image"),
        (Container("tf", runtime="docker"), "each task runs in the image tf with docker"),
    ],
)
def test_the_container_of_tasks_has_a_line(container: Container, line: str) -> None:
    assert container_line(container) == line
