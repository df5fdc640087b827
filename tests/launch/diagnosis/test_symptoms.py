"""What looks wrong: each rule finds what it is for, and nothing on a host where all is right."""

from dataclasses import replace
from typing import Any, Dict

import pytest

from cluster.protocol.typed_json import from_values
from launch.agent.wire.host_facts import Clock
from launch.diagnosis.collect import HostReport
from launch.diagnosis.symptoms import newest_run, run_status, signs
from launch.status.run import RunStatus
from tests.launch.diagnosis.evidence import RUN, disk, process, status, told, versions


def only(host: HostReport) -> str:
    """The one thing that looks wrong with it."""
    ((_, text),) = signs([host])
    return text


def test_the_run_that_lives_is_the_newest_and_of_others_the_one_that_began_last() -> None:
    earlier = HostReport("a", run="r-20991231-235959", generation=1)
    later = HostReport("b", run="r-20261120-120000", generation=2)
    assert newest_run([earlier, later, HostReport("c")]) == later.run
    assert newest_run([replace(earlier, lives=True), later]) == earlier.run


def test_where_all_is_right_nothing_is_told() -> None:
    assert signs([told("a", status=status("a")), told("b")]) == []


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"live": {"agent": None, "processes": [process()]}}, "its agent is gone, though the run has not ended"),
        (
            {"live": {"agent": 41, "processes": []}},
            "no process of tasks that the status reports as running: worker:0",
        ),
        (
            {"live": {"agent": 41, "processes": [process(state="T")]}},
            "worker:0 (pid 42) is stopped by a signal (SIGSTOP or a debugger)",
        ),
        (
            {"live": {"agent": 41, "processes": [process(state="D", waits_in="nfs_wait")]}},
            "worker:0 (pid 42) hangs in the kernel, in nfs_wait",
        ),
        (
            {"live": {"agent": 41, "processes": [process(swapped_bytes=2e9)]}},
            "worker:0 (pid 42) has 2.0 GB in the swap",
        ),
        ({"disks": {"/w": {"error": "Stale file handle"}}}, "/w cannot be used: Stale file handle"),
        ({"disks": {"/w": disk(free_bytes=5 * 10**6)}}, "/w: expected at least 1000 MB free, found 5 MB free"),
        ({"disks": {"/w": disk(free_inodes=1)}}, "/w: expected free inodes for new files, found 1 of 100"),
        ({"disks": {"/w": disk(writable=False)}}, "/w cannot be used: it is not writable"),
        (
            {"machine": {"memory": {"MemTotal": 100e9, "MemAvailable": 1e9}, "cores": 2, "load": [1.0]}},
            "only 1.0 GB of 100 GB of memory is available",
        ),
        ({"machine": {"memory": {}, "cores": 2, "load": [9.0]}}, "a load of 9 on 2 cores"),
        (
            {"connections": {"count": 3, "hanging": 1, "first": [{"remote": "b:2222", "state": "SYN_SENT"}]}},
            "1 of 3 connections hang: b:2222 SYN_SENT",
        ),
    ],
)
def test_what_is_wrong_on_a_host_is_told(files: Dict[str, Any], text: str) -> None:
    assert only(told("a", status=status("a"), **files)) == text


def test_of_the_kernel_s_messages_each_kind_is_told_once_with_the_last() -> None:
    messages = [{"time": 0.0, "kind": "memory", "text": text} for text in ("Killed process 1", "Killed process 2")]
    assert only(told("a", kernel=messages)).startswith("the kernel reported trouble with memory 2 times, last at ")
    assert only(told("a", kernel=messages)).endswith(": Killed process 2")


def test_processes_that_outlive_their_run_are_told() -> None:
    host = told("a", status=status("a", state="failed"))
    assert only(host) == "1 living process after the run's end; `launch sweep --kill` ends them"


def test_a_clock_is_off_by_more_than_its_error() -> None:
    host = told("a")
    host.facts = replace(host.facts, clock=Clock(-90.0, 0.1))
    assert only(host) == "its clock is 90.0 s behind this machine's (± 0.100 s)"
    host.facts = replace(host.facts, clock=Clock(-2.0, 1.5))
    assert signs([host]) == []


def test_a_host_that_was_not_in_the_newest_run_is_told_and_not_judged_by_it() -> None:
    old = told("b", live={"agent": None, "processes": []})
    old.run = "r-20261119-000000"
    found = [told("a", status=status("b")), old]
    assert newest_run(found) == RUN
    assert [text for host, text in signs(found) if host == "b"] == [
        f"its newest run is r-20261119-000000: this host took no part in {RUN}"
    ]


def test_a_host_that_told_nothing_or_not_all_is_told() -> None:
    assert signs([HostReport("a", problem="is off")]) == [("a", "incomplete answer: is off")]
    assert signs([HostReport("a", missing={"gpus": "not done within 9 s"}, seconds=1.0)]) == [
        ("a", "its answer lacks section gpus: not done within 9 s")
    ]


def test_hosts_that_differ_from_most_are_told() -> None:
    other = versions(packages={"tensorflow": "1.15.5"}, code={"job": "2" * 16})
    assert signs([told("a"), told("b", versions=other), told("c")]) == [
        ("b", "TensorFlow 1.15.0: a,c | 1.15.5: b"),
        ("b", "the code of the run job 11111111: a,c | job 22222222: b"),
    ]


def test_a_python_that_does_not_start_is_told() -> None:
    assert only(told("a", versions=versions(python={"error": "cannot start /x"}))) == "cannot start /x"


def test_a_file_that_is_not_what_it_should_be_is_no_fact_and_is_named() -> None:
    odd = told("a", machine={"memory": 3}, kernel="odd")
    assert signs([odd]) == [
        ("a", "its answer lacks section kernel.json: kernel: expected a list, found a text"),
        ("a", "its answer lacks section machine.json: machine.memory: expected an object, found a whole number"),
    ]
    assert "kernel.json" not in odd.files


def test_the_status_is_the_lead_s_which_has_all_tasks() -> None:
    whole = status("a")
    found = [told("b", status={"tasks": []}), told("a", status=whole), told("c", status={"cannot_be_read": "x"})]
    assert run_status(found) == from_values(RunStatus, whole)
    assert run_status([told("b")]) is None and newest_run([]) is None
