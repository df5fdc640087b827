"""A disk that fails in any change, and any damage to any record, let no agent end and no task begin twice."""

import errno
import os
from collections import Counter
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import pytest

from cluster.protocol.typed_json import from_values
from launch.agent.state.run_folder import RunFolder
from tests.simulation import disk_faults, runs
from tests.simulation.damage import MANNERS
from tests.simulation.disk_faults import records
from tests.simulation.disks import Disk
from tests.simulation.faults import KINDS, Fault
from tests.simulation.loops import Gone
from tests.simulation.promises import FORGETS, LOSES_FILES
from tests.simulation.runs import FURTHER_FROM
from tests.simulation.verdict import failure
from tests.simulation.world import World

DETACHED = FURTHER_FROM + 28  # a run of two hosts whose keepers, and boots, begin agents again
STARTS_AT = 1.2  # its agents have logins
REFUSES = ("generation.json", "plan.json", "agent.json")  # where these cannot be written, an agent refuses to start
WAITS_UNTIL = 4.0  # its tasks wait for their turn
LEFT_AT = 12.0  # its launcher has left it
FOLDER = "/simulated/h0/runs/r/hosts/h0"
EVERY = 7  # changes of a file, of which one fails: a file is replaced in six at most
NUMBERS = (errno.ENOSPC, errno.EIO, errno.EROFS)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "STEPS", 30)


@lru_cache(maxsize=None)
def written(host: str) -> Sequence[str]:
    """The records that the agent of a host has written at that time, by what it really writes."""
    world = World(DETACHED, [])
    found: List[str] = []
    world.agenda.add(LEFT_AT, lambda: found.extend(Path(each).name for each in records(world.machines[host])))
    assert failure(world) is None and world.training.step == world.plan.steps
    return found


def shown(world: World) -> str:
    return "\n".join(f"{each.at:.2f} {each.host} {each.text}" for each in world.history)


@pytest.mark.parametrize("host", ["h0", "h1"])
def test_no_damage_to_a_record_breaks_a_promise(host: str) -> None:
    """Each record is damaged in one manner; seeds have the pairs."""
    count = len(written(host))
    for record in range(count):
        world = World(DETACHED, [Fault(LEFT_AT, "damaged", host, float(record + count * (record % len(MANNERS))))])
        assert failure(world) is None and world.training.step == world.plan.steps, shown(world)


@pytest.mark.parametrize("manner", ["cut short", "with an unknown field"])
def test_no_attempt_is_used_twice_whatever_is_left_of_the_record_of_attempts(manner: str) -> None:
    number = written("h0").index("attempts.json") + len(written("h0")) * list(MANNERS).index(manner)
    world = World(DETACHED, [Fault(LEFT_AT, "damaged", "h0", float(number))])
    assert failure(world) is None, shown(world)


@pytest.mark.parametrize("of", range(EVERY))
def test_a_change_that_fails_ends_no_run(of: int) -> None:
    """Each change of each file of every agent fails, in one of these histories."""
    world = World(DETACHED, [])
    changes: Dict[str, int] = Counter()
    number = NUMBERS[of % len(NUMBERS)]

    def fail(kind: str, path: str) -> None:
        file = path.replace("/.", "/").replace(".partial", "")
        if world.agenda.now < WAITS_UNTIL and (os.path.basename(file) in REFUSES or kind == "sync"):
            return
        changes[file] += 1
        if changes[file] % EVERY == of:
            raise OSError(number, os.strerror(number))

    def watch() -> None:
        for machine in world.machines.values():
            machine.disk.before = fail

    world.agenda.add(STARTS_AT, watch)
    assert failure(world) is None and world.training.step == world.plan.steps, shown(world)
    assert {os.path.basename(path) for path in changes} >= {"attempts.json", "status.json", "processes.json", "h0"}


@pytest.mark.parametrize("kind", ["put", "replace"])
def test_an_agent_that_is_killed_while_it_records_an_attempt_uses_no_number_twice(kind: str) -> None:
    world = World(DETACHED, [Fault(LEFT_AT, "crash", "ps:0")])
    met: List[str] = []

    def kill(what: str, path: str) -> None:
        if world.agenda.now > LEFT_AT and what == kind and "attempts.json" in path and not met:
            met.append(path)
            world.machines["h0"].kill_agent()
            raise Gone

    world.agenda.add(0.5, lambda: setattr(world.machines["h0"].disk, "before", kill))
    assert failure(world) is None and met and world.training.step == world.plan.steps, shown(world)


def cut_after_an_attempt_is_recorded() -> World:
    """A history in which the lead's host loses power 0.05 s after a second attempt is on record."""
    world = World(DETACHED, [Fault(LEFT_AT, "crash", "ps:0")])
    world.random_of_disks, world.healed_at = Random(2), 60.0
    met: List[str] = []

    def cut() -> None:
        world.machines["h0"].lose_power()
        world.agenda.after(disk_faults.OFF_FOR_S, world.machines["h0"].boot)

    def watch(kind: str, path: str) -> None:
        if world.agenda.now > LEFT_AT and (kind, os.path.basename(path)) == ("replace", "attempts.json") and not met:
            met.append(path)
            world.agenda.after(0.05, cut)

    world.agenda.add(0.5, lambda: setattr(world.machines["h0"].disk, "before", watch))
    return world


def test_an_attempt_that_is_not_synced_before_it_is_ordered_is_used_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure(cut_after_an_attempt_is_recorded()) is None
    note = RunFolder.note

    def unsynced(self: RunFolder, name: str, values: Mapping[str, Any], durable: bool = False) -> bool:
        return note(self, name, values, durable and name != "attempts.json")

    monkeypatch.setattr(RunFolder, "note", unsynced)
    why = failure(cut_after_an_attempt_is_recorded()) or ""
    assert why.startswith("I5: ") and why.endswith(" once more")


def _read(folder: RunFolder, name: str, kind: Any) -> Any:
    return from_values(kind, folder.read(name)) if folder.has(name) else None


def test_a_reader_that_raises_for_a_torn_record_ends_its_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunFolder, "read_record", _read)
    number = written("h0").index("status.json") + len(written("h0")) * list(MANNERS).index("cut short")
    assert (failure(World(DETACHED, [Fault(LEFT_AT, "damaged", "h0", float(number))])) or "").startswith("I0: ")


def written_by(disk: Disk, path: str, text: str, syncs: bool, names: bool = True) -> None:
    """Replace a file as ``RunFolder.write`` does; without ``names``, power is cut before the folder is synced."""
    with disk.handles.open(f"{path}.partial", "w") as file:
        file.write(text)
        file.flush()
        if syncs:
            disk.handles.fsync(file.fileno())
    disk.replace(f"{path}.partial", path)
    if syncs and names:
        disk.flush(os.path.dirname(path))


def left(of: str, is_torn: bool, *writes: Tuple[str, bool]) -> List[str]:
    """What a power cut may leave of a file, by many cuts."""
    found = set()
    for seed in range(60):
        disk = Disk(lambda: 0.0)
        for text, syncs in writes:
            written_by(disk, of, text, syncs)
        disk.lose(Random(seed), is_torn)
        found.add(disk.read(of).decode() if disk.lexists(of) else "missing")
    return sorted(found)


def test_a_power_cut_leaves_what_is_synced_and_any_piece_of_what_is_not() -> None:
    path = f"{FOLDER}/status.json"
    assert left(path, True, ("old", True)) == ["old"]
    assert left(path, False, ("new", False)) == ["", "missing", "new"]
    assert left(path, False, ("old", True), ("new", False)) == ["", "new", "old"]
    assert left(path, True, ("old", True), ("new", False)) == ["", "\0\0\0", "n", "ne", "new", "old"]


def test_the_name_of_a_file_is_lost_until_its_folder_is_synced() -> None:
    found = set()
    for seed in range(20):
        disk = Disk(lambda: 0.0)
        with disk.handles.open(f"{FOLDER}/a", "w") as file:
            file.write("text")
            file.flush()
            disk.handles.fsync(file.fileno())
        disk.lose(Random(seed), is_torn=False)
        found.add(disk.lexists(f"{FOLDER}/a"))
    assert found == {True, False}


def test_a_file_that_is_synced_before_it_gets_its_name_is_never_in_pieces() -> None:
    path, found = f"{FOLDER}/attempts.json", set()
    for seed in range(60):
        disk = Disk(lambda: 0.0)
        written_by(disk, path, "old", True)
        written_by(disk, path, "new", True, names=False)
        disk.lose(Random(seed), is_torn=True)
        found.add(disk.read(path))
    assert found == {b"old", b"new"}


def test_a_disk_that_is_full_takes_a_shorter_text_in_the_place_of_a_file() -> None:
    disk = Disk(lambda: 0.0)
    disk.write("/a", "long text")
    disk.is_full = True
    with disk.handles.open("/a", "r+") as file:
        file.write("short")
        file.truncate()
    assert disk.read("/a") == b"short"
    with pytest.raises(OSError, match="No space left"):
        disk.handles.open("/b", "w")


@pytest.mark.parametrize(
    "seed, faults",
    [
        (3058061, [Fault(10.0, "damaged", "h0", 101.0), Fault(10.0, "cut in", "h0", 10.0), Fault(20.0, "exit", "h0")]),
        (3044686, [Fault(1.4, "laptop sleeps", "", 3.2), Fault(4.9, "damaged", "h0", 10.0)]),  # I5: of the last moment
    ],
)
def test_attempts_are_counted_by_the_status_where_their_record_is_damaged(seed: int, faults: List[Fault]) -> None:
    assert failure(World(seed, faults)) is None


def test_a_run_that_ended_on_a_full_disk_shows_no_new_status_while_its_agent_tidies() -> None:
    """Found by seed 3080047: the disk had room once more, and the lead was over."""
    faults = [Fault(30.0, "tidy", "h0", 30.0), Fault(50.0, "disk", "h0", 30.0), Fault(50.0, "cut", "h0", 30.0)]
    assert failure(World(3080047, faults)) is None


def test_what_may_lose_files_is_known_to_the_promises() -> None:
    assert {*disk_faults.KINDS} <= LOSES_FILES and {*KINDS, *disk_faults.KINDS} >= FORGETS
