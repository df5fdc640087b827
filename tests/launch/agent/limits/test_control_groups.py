"""Where groups are made, and what their files say, in a tree of our own; ``test_task_limits`` has a real kernel."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Dict, Tuple

import pytest

from launch.agent.limits.control_groups import V1, V2, Files, Group, GroupPlace, _places, remove

LIMIT = 4 << 30


def tree(root: Path, files: Dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


SESSION = {
    "proc/self/cgroup": "0::/user.slice/user-0.slice/session-4.scope\n",
    "sys/fs/cgroup/cgroup.subtree_control": "cpu memory\n",
    "sys/fs/cgroup/user.slice/cgroup.subtree_control": "memory pids\n",
    "sys/fs/cgroup/user.slice/user-0.slice/cgroup.subtree_control": "memory\n",
    "sys/fs/cgroup/user.slice/user-0.slice/session-4.scope/cgroup.subtree_control": "\n",
}


def test_groups_are_made_in_the_nearest_group_above_that_hands_memory_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, SESSION)
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(str(tmp_path)).st_uid + 1)  # of another user, none is asked
    top = tmp_path / "sys/fs/cgroup"
    folders = [top / "user.slice/user-0.slice", top / "user.slice", top]
    assert list(_places(tmp_path)) == [GroupPlace(folder, V2) for folder in folders]


@pytest.mark.parametrize(("user", "asked"), [(1000, True), (0, False), (1001, False)])
def test_a_group_that_is_delegated_to_this_user_is_asked_to_hand_memory_down_and_one_of_root_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, asked: bool
) -> None:
    tree(tmp_path, {"proc/self/cgroup": "0::/ours/agent\n", "sys/fs/cgroup/ours/cgroup.subtree_control": ""})
    ours = tmp_path / "sys/fs/cgroup/ours"
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "stat", lambda path: SimpleNamespace(st_uid=1000 if path == str(ours) else 0))
    assert list(_places(tmp_path)) == ([GroupPlace(ours, V2)] if asked else [])
    assert (ours / "cgroup.subtree_control").read_text() == ("+memory" if asked else "")


def test_in_version_1_groups_are_made_below_the_own_one_of_memory_or_at_the_top_of_a_container(tmp_path: Path) -> None:
    tree(tmp_path, {"proc/self/cgroup": "9:name=systemd:/x\n4:cpu,memory:/a/b\n0::/\n"})
    top = tmp_path / "sys/fs/cgroup/memory"
    assert list(_places(tmp_path)) == [GroupPlace(top / "a/b", V1), GroupPlace(top, V1)]


@pytest.mark.parametrize(
    ("place", "files", "written"),
    [
        (V2, ("memory.max", "memory.swap.max", "memory.oom.group"), (str(LIMIT), "0", "1")),
        (V1, ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), (str(LIMIT), str(LIMIT))),
    ],
)
def test_a_limit_holds_with_swap_and_for_all_processes_at_once(
    tmp_path: Path, place: Files, files: Tuple[str, ...], written: Tuple[str, ...]
) -> None:
    tree(tmp_path, dict.fromkeys(files, ""))
    Group(tmp_path, place).bound(LIMIT)
    assert tuple((tmp_path / name).read_text() for name in files) == written


def test_a_kernel_without_swap_has_fewer_files(tmp_path: Path) -> None:
    Group(tmp_path, V2).bound(LIMIT)
    assert [path.name for path in tmp_path.iterdir()] == ["memory.max"]


@pytest.mark.parametrize(
    ("files", "kills"),
    [
        ({"memory.events": "low 0\nmax 9\noom 1\noom_kill 3\noom_group_kill 1\n"}, 3),
        ({"memory.events": "low 0\nmax 0\noom 0\noom_kill 1\n"}, 0),  # the whole host had no memory
        ({"memory.events": "low 0\nmax 9\noom 0\noom_kill 0\n"}, 0),  # pages of files were dropped
        ({}, 0),
    ],
)
def test_only_kills_for_the_group_s_own_limit_count(tmp_path: Path, files: Dict[str, str], kills: int) -> None:
    tree(tmp_path, files)
    assert Group(tmp_path, V2).kills() == kills


@pytest.mark.parametrize(("peak", "kills"), [(LIMIT, 1), (LIMIT - 4096, 1), (LIMIT // 2, 0)])
def test_in_version_1_the_largest_use_shows_whether_the_limit_was_the_cause(
    tmp_path: Path, peak: int, kills: int
) -> None:
    counts = {"memory.limit_in_bytes": f"{LIMIT}\n", "memory.max_usage_in_bytes": f"{peak}\n"}
    tree(tmp_path, {**counts, "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"})
    assert Group(tmp_path, V1).kills() == kills


def test_a_group_that_is_not_empty_stays(tmp_path: Path) -> None:
    tree(tmp_path, {"full/x": "", "empty/x": ""})
    (tmp_path / "empty/x").unlink()
    assert (remove(tmp_path / "full", 0.0), remove(tmp_path / "empty", 0.0), remove(tmp_path / "gone")) == (
        False, True, True,
    )  # fmt: skip
