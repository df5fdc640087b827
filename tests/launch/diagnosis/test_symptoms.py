"""What looks wrong: each rule finds what it is for, and nothing on a host where all is right."""

from dataclasses import replace
from typing import Any, Dict

import pytest

from launch.diagnosis.collect import Evidence
from launch.diagnosis.symptoms import newest_run, run_status, signs
from launch.status.run import RunStatus
from launch.status.values import from_values
from tests.launch.diagnosis.evidence import RUN, process, status, told

DISK = told("a").files["disks.json"]["/w"]


def only(host: Evidence) -> str:
    """The one thing that looks wrong with it."""
    ((_, text),) = signs([host])
    return text


def test_the_run_that_lives_is_the_newest_and_of_others_the_one_that_began_last() -> None:
    earlier = Evidence("a", run="r-20991231-235959", generation=1)
    later = Evidence("b", run="r-20261120-120000", generation=2)
    assert newest_run([earlier, later, Evidence("c")]) == later.run
    assert newest_run([replace(earlier, lives=True), later]) == earlier.run


def test_where_all_is_right_nothing_is_told() -> None:
    assert signs([told("a", status=status("a")), told("b")]) == []


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"live": {"agent": None, "processes": [process()]}}, "its agent is gone, though the run has not ended"),
        (
            {"live": {"agent": 41, "processes": []}},
            "running by the run's status, but no process of it is there: worker:0",
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
        ({"disks": {"/w": {"error": "Stale file handle"}}}, "/w: Stale file handle"),
        ({"disks": {"/w": {**DISK, "free_bytes": 5e6}}}, "/w: 5 MB free of 100 GB"),
        ({"disks": {"/w": {**DISK, "free_inodes": 1}}}, "/w: 1 inodes free of 100"),
        ({"disks": {"/w": {**DISK, "writable": False}}}, "/w: it cannot be written to"),
        (
            {"machine": {"memory": {"MemTotal": 100e9, "MemAvailable": 1e9}, "cores": 2, "load": [1.0]}},
            "1.0 GB of memory to be had of 100 GB",
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
    assert only(told("a", kernel=messages)).startswith("the kernel told 2 times of trouble with memory, last at ")
    assert only(told("a", kernel=messages)).endswith(": Killed process 2")


def test_processes_that_outlive_their_run_are_told() -> None:
    host = told("a", status=status("a", state="failed"))
    assert only(host) == "1 processes live on after the run's end; `launch sweep --kill` ends them"


def test_a_clock_is_off_by_more_than_its_error() -> None:
    host = told("a")
    host.clock = {"offset_s": -90.0, "error_s": 0.1}
    assert only(host) == "its clock is -90.0 s off this machine's"
    host.clock = {"offset_s": -2.0, "error_s": 1.5}
    assert signs([host]) == []


def test_a_host_that_was_not_in_the_newest_run_is_told_and_not_judged_by_it() -> None:
    old = told("b", live={"agent": None, "processes": []})
    old.run = "r-20261119-000000"
    found = [told("a", status=status("b")), old]
    assert newest_run(found) == RUN
    assert [text for host, text in signs(found) if host == "b"] == [
        f"its newest run is r-20261119-000000: it took no part in {RUN}"
    ]


def test_a_host_that_told_nothing_or_not_all_is_told() -> None:
    assert signs([Evidence("a", problem="is off")]) == [("a", "did not tell all: is off")]
    assert signs([Evidence("a", missing={"gpus": "not done within 9 s"}, seconds=1.0)]) == [
        ("a", "nothing of its gpus: not done within 9 s")
    ]


def test_hosts_that_differ_from_most_are_told() -> None:
    other = {"python": {"version": "3.7.9"}, "packages": {"tensorflow": "1.15.5"}, "code": {"job": "2" * 16}}
    assert signs([told("a"), told("b", versions=other), told("c")]) == [
        ("b", "tensorflow is 1.15.5, on most hosts 1.15.0"),
        ("b", "the code is job 22222222, on most hosts job 11111111"),
    ]


def test_the_status_is_the_lead_s_which_has_all_tasks() -> None:
    whole = status("a")
    found = [told("b", status={"tasks": []}), told("a", status=whole), told("c", status={"cannot_be_read": "x"})]
    assert run_status(found) == from_values(RunStatus, whole)
    assert run_status([told("b")]) is None and newest_run([]) is None
