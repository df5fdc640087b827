"""``--include`` and ``--exclude``: part of a file is a cluster of its own, or refused."""

from dataclasses import replace
from typing import Any, List, Sequence

import pytest

from cluster.protocol.settings import Elastic
from cluster.spec.model import Spec
from cluster.task import Train
from launch.errors import UsageError
from launch.hostfile.selection import chosen, narrowed
from tests.support.launch.fakes import spec_of

EIGHT = spec_of(
    *(f"ps:{n}@cpu0{n + 1}" for n in range(2)),
    *(f"worker:{n}@gpu0{n // 2 + 1}" for n in range(6)),
    "evaluator:0@gpu09",
)


def left(*include: str, exclude: Sequence[str] = (), spec: Spec = EIGHT) -> List[str]:
    return [f"{task.name}@{task.host}" for task in narrowed(spec, include, exclude).tasks]


def refusal(*include: str, exclude: Sequence[str] = (), spec: Spec = EIGHT, **train: Any) -> str:
    with pytest.raises(UsageError) as refused:
        narrowed(replace(spec, train=Train(**train)), include, exclude)
    return str(refused.value)


def test_without_patterns_the_spec_is_what_it_was() -> None:
    assert narrowed(EIGHT, (), ()) is EIGHT


def test_a_host_means_all_of_its_tasks_and_those_that_stay_are_numbered_without_gaps() -> None:
    assert left(exclude=["gpu01"]) == [
        "ps:0@cpu01", "ps:1@cpu02", "worker:0@gpu02", "worker:1@gpu02", "worker:2@gpu03", "worker:3@gpu03",
        "evaluator:0@gpu09",
    ]  # fmt: skip


def test_a_task_keeps_its_address_under_its_new_number() -> None:
    worker = narrowed(EIGHT, (), ["worker:0"]).tasks_of("worker")[0]
    assert (worker.name, worker.address) == ("worker:0", "gpu01:2222")
    assert narrowed(EIGHT, (), ["gpu01"]).chief.host == "gpu02"


@pytest.mark.parametrize(
    "patterns",
    [
        ["cpu01,gpu[02-03]"],
        ["cpu01", "gpu[02,03]"],
        ["ps:0", "worker:[2-5]"],
        ["ps:0,worker:2-5"],
        ["ps:[0],gpu[02-03]"],
    ],
)
def test_ranges_tasks_and_commas_say_the_same(patterns: List[str]) -> None:
    assert left(*patterns) == [
        "ps:0@cpu01", "worker:0@gpu02", "worker:1@gpu02", "worker:2@gpu03", "worker:3@gpu03",
    ]  # fmt: skip


def test_what_is_excluded_is_out_even_if_it_is_included() -> None:
    assert left("ps:*,gpu[01-02]", exclude=["worker:[1-3]"]) == ["ps:0@cpu01", "ps:1@cpu02", "worker:0@gpu01"]


def test_a_range_may_name_hosts_that_the_file_lacks() -> None:
    assert len(left(exclude=["gpu[03-64]"])) == 7 - 1


def test_chosen_tasks_keep_their_numbers() -> None:
    assert [task.name for task in chosen(EIGHT.tasks, ["gpu03"], [])] == ["worker:4", "worker:5"]


@pytest.mark.parametrize("pattern", ["gpu20", "gpu[20-30]", "worker:6", "chief:*", "worker:[6-9]"])
def test_a_pattern_that_means_nothing_is_refused_with_what_there_is(pattern: str) -> None:
    assert refusal(exclude=["gpu01", pattern]) == (
        "--exclude: expected a task or host of the file, which has ps:[0-1], worker:[0-5], evaluator:0, "
        f"and the hosts cpu[01-02],gpu[01-03,09]; found {pattern!r}"
    )


def test_a_pattern_that_cannot_be_read_is_refused_with_its_flag() -> None:
    assert refusal("gpu[04-01]").startswith("--include: expected an ascending range")
    assert refusal("worker:a").startswith("--include: expected ROLE:*, ROLE:3 or ROLE:[0-3]; found 'worker:a'")
    assert "or a task such as worker:3; found 'boss:1'" in refusal("boss:1")


def test_no_ps_or_no_worker_left_is_refused_with_what_to_add() -> None:
    assert refusal("gpu[01-03]") == (
        "--include, --exclude: expected at least one ps to be left, found none of 2; keep one, as in --include 'ps:0,…'"
    )
    assert "at least one worker to be left, found none of 6" in refusal(exclude=["worker:*"])


def test_a_file_without_ps_needs_none() -> None:
    assert left(exclude=["worker:0"], spec=spec_of("worker:0@a", "worker:1@b")) == ["worker:0@b"]


def test_as_many_backup_workers_as_are_left_are_refused() -> None:
    assert "expected more workers than train.backup_workers (2), found 2 left" in refusal(
        "ps:0,gpu01", backup_workers=2
    )


def test_thousands_of_tasks_are_narrowed_at_once() -> None:
    tasks = tuple(replace(EIGHT.tasks[-2], index=n, host=f"n{n:05}") for n in range(10_000))
    spec = replace(EIGHT, tasks=(*EIGHT.tasks_of("ps"), *tasks))
    assert len(narrowed(spec, (), ["n[00000-00999],worker:[1000-1999]"]).tasks) == 8_002


def test_an_elastic_run_keeps_enough_workers_and_a_ps_that_is_no_spare() -> None:
    spare = replace(EIGHT.tasks[1], index=2, spare=True)
    spec = replace(EIGHT, tasks=(*EIGHT.tasks[:2], spare, *EIGHT.tasks[2:]), elastic=Elastic(3))
    assert "elastic.min_workers (3), found 2 left" in refusal("ps:*,worker:[0-1]", spec=spec)
    assert "at least one ps to be left, found none of 2" in refusal("ps:2,worker:*", spec=spec)
    assert left("ps:*,worker:[0-2]", spec=spec)[2] == "ps:2@cpu02"


def test_the_worker_that_success_names_keeps_its_meaning_under_its_new_number() -> None:
    spec = replace(EIGHT, success="worker:3")
    assert narrowed(spec, (), ["gpu01"]).success == "worker:1"
    assert narrowed(replace(EIGHT, success="all"), (), ["gpu01"]).success == "all"
    assert "expected worker:3 to be left, which success names" in refusal(exclude=["gpu02"], spec=spec)
