"""Two chiefs that share a folder, explored: every order of their operations, with the real ``Ownership``.

A chief's next operation follows from the results of those before. So its code runs again from its beginning for each
operation, with the results that it had, up to the first operation without one. A chief that dies is one that takes no
further operation, which every order includes.
"""

import contextlib
import itertools
import json
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple
from unittest import mock

from cluster.checkpoints.owned_folder import Owner, Ownership
from cluster.errors import CheckpointError
from cluster.protocol.checkpoint_files import OWNER
from tests.cluster.checkpoints.replayed import Pause, Replay, Result
from tests.simulation.paths import paths_on

FOLDER = "/shared"
SAVES = 2  # of each chief: a check, and a write after it


class Folder(NamedTuple):
    """The shared folder: the file of each name, and the text of each file."""

    names: Tuple[Tuple[str, int], ...] = ()
    texts: Tuple[str, ...] = ()
    is_full: bool = False  # for another file; a file that is there can be written
    failures: int = 0  # how often it may still refuse to open a file to write

    def happen(self, what: str, name: str, more: Any) -> Tuple["Folder", Any]:
        """Return the folder after an operation, and the result. Raises OSError."""
        names = dict(self.names)
        if what == "save":
            return self, None
        if what == "exists":
            return self, name in names
        if what == "create" and name not in names:
            if self.is_full:
                raise OSError(28, "No space left on device")
            return self._named({**names, name: len(self.texts)}, ""), len(self.texts)
        if what == "write":
            return self._with(more[0], more[1] + self.texts[more[0]][len(more[1]) :]), None
        if what == "cut":
            return self._with(more[0], self.texts[more[0]][: more[1]]), None
        if name not in names:
            raise FileNotFoundError(2, "No such file or directory")
        if what == "read":
            return self, self.texts[names[name]]
        if what in ("create", "open"):
            return (self._with(names[name], "") if what == "create" else self), names[name]
        file = names.pop(name)
        return self._named(names if what == "unlink" else {**names, more: file}), None

    @property
    def note(self) -> str:
        """Return the text of the note; "" without one."""
        return next((self.texts[file] for name, file in self.names if name == OWNER), "")

    def _named(self, names: Dict[str, int], text: Optional[str] = None) -> "Folder":
        texts = self.texts if text is None else (*self.texts, text)
        return self._replace(names=tuple(sorted(names.items())), texts=texts)

    def _with(self, file: int, text: str) -> "Folder":
        return self._replace(texts=(*self.texts[:file], text, *self.texts[file + 1 :]))


class Chief(NamedTuple):
    """Where a chief has come to.

    Attributes:
      results: of its operations.
      noted_at, sure_at, began_at: numbers of moments, -1 for never: when its note got there, when it last found the
        note, and when it began its newest check.
      end: why it stopped; "" where it goes on, "done" at its end.
    """

    owner: Owner
    results: Tuple[Result, ...] = ()
    noted_at: int = -1
    sure_at: int = -1
    began_at: int = -1
    end: str = ""


class Explorer:
    """Every state of some chiefs with one folder."""

    def __init__(self, *owners: Owner):
        self._owners, self._replay = owners, Replay()
        path: Any = paths_on(self._replay)
        self._claims = {owner: Ownership(path(FOLDER), owner) for owner in owners}
        self._next: Dict[Any, Any] = {}
        self.states = 0

    def wrong(self, folder: Folder) -> Iterator[str]:
        """Yield what is wrong in any state that can be reached, with the way to the state."""
        start = (folder, tuple(Chief(owner) for owner in self._owners), 0)
        seen = {_key(start)}
        due: List[Any] = [(start, ())]
        os_ = SimpleNamespace(replace=self._replay.replace)
        with mock.patch("cluster.protocol.shared_files.os", os_), mock.patch(
            "cluster.protocol.shared_files.open", self._replay.open, create=True
        ):
            while due:
                state, way = due.pop()
                self.states += 1
                for index, fails in itertools.product(range(len(state[1])), (False, True)):
                    chief = state[1][index]
                    if chief.end or (fails and not self._may_fail(state[0], chief)):
                        continue
                    following, said, problem = self._step(state, index, fails)
                    further = (*way, f"{chief.owner.run} {chief.owner.attempt}: {said}{' fails' if fails else ''}")
                    if problem:
                        yield f"{problem}: {'; '.join(further)}"
                    elif _key(following) not in seen:
                        seen.add(_key(following))
                        due.append((following, further))

    def _may_fail(self, folder: Folder, chief: Chief) -> bool:
        return folder.failures > 0 and self._operation(chief)[0] in ("create", "open")

    def _step(self, state: Any, index: int, fails: bool) -> Tuple[Any, str, Optional[str]]:
        """Let a chief take its next operation; return the state after it, what it was, and what is wrong with it."""
        folder, chiefs, moment = state
        chief = chiefs[index]
        what, name, more, begins = self._operation(chief)
        moment += 1
        if begins:
            chief = chief._replace(began_at=moment)
        others = [each for each in chiefs if each.owner != chief.owner]
        if what == "end":
            stopped = chief._replace(end=name or "done")
            problem = _stopped_for_nothing(stopped, others)
            return (folder, _put(chiefs, index, stopped), moment), name or "done", problem
        try:
            if fails:
                folder = folder._replace(failures=folder.failures - 1)
                raise OSError(5, "Input/output error")
            folder, value = folder.happen(what, name, more)
            result: Result = ("done", value)
        except OSError as error:
            result = ("error", error.errno)
        problem = _late(chief, others) if what == "save" else None
        chief = chief._replace(results=(*chief.results, result))
        if what == "read" and _owner_of(str(result[1])) == chief.owner:
            chief = chief._replace(sure_at=moment)
        chiefs = _put(chiefs, index, chief)
        if folder.note != state[0].note:
            owner = _owner_of(folder.note)
            chiefs = tuple(each._replace(noted_at=moment) if each.owner == owner else each for each in chiefs)
        return (folder, chiefs, moment), what, problem

    def _operation(self, chief: Chief) -> Tuple[str, str, Any, bool]:
        """Return the next operation of a chief, and whether a check begins with it."""
        key = chief.owner, chief.results
        if key not in self._next:
            begun: List[int] = []
            self._replay.begin(chief.results)
            claim = self._claims[chief.owner]
            try:
                _live(claim, self._replay, begun)
                found = ("end", "", None)
            except Pause as pause:
                found = pause.args  # type: ignore[assignment]
            except CheckpointError:
                found = ("end", "replaced", None)
            self._next[key] = (*found, len(chief.results) in begun)
        return self._next[key]  # type: ignore[no-any-return]


def _live(claim: Ownership, replay: Replay, begun: List[int]) -> None:
    """Do what a chief does: open the folder, then save some times; see ``cluster.checkpoints.saver``."""
    with contextlib.suppress(OSError):  # training goes on
        claim.take()
    for _ in range(SAVES):
        begun.append(replay.at)
        try:
            claim.check()
        except OSError:
            continue
        replay.perform("save", FOLDER)


def _owner_of(note: str) -> Optional[Owner]:
    try:
        return Owner(**json.loads(note))
    except (TypeError, ValueError):
        return None


def _put(chiefs: Tuple[Chief, ...], index: int, chief: Chief) -> Tuple[Chief, ...]:
    return (*chiefs[:index], chief, *chiefs[index + 1 :])


def _succeeds(one: Owner, other: Owner) -> bool:
    """Return whether a chief is a later attempt of the other's run."""
    return one.run == other.run and one.attempt > other.attempt


def _late(chief: Chief, others: List[Chief]) -> Optional[str]:
    """I2: no chief writes by a check that began after its successor was sure of the folder."""
    for each in others:
        noted_later = each.noted_at > chief.noted_at and not _succeeds(chief.owner, each.owner)
        is_later = _succeeds(each.owner, chief.owner) or noted_later
        if is_later and chief.noted_at < max(each.noted_at, each.sure_at) < chief.began_at:
            return f"{chief.owner.run} {chief.owner.attempt} writes after {each.owner.run} {each.owner.attempt}"
    return None


def _stopped_for_nothing(chief: Chief, others: List[Chief]) -> Optional[str]:
    """No chief stops for one that it succeeds."""
    if chief.end == "replaced" and all(_succeeds(chief.owner, each.owner) for each in others):
        return f"{chief.owner.run} {chief.owner.attempt} stops for one that it succeeds"
    return None


def _key(state: Any) -> Any:
    """Return a state with its moments in their order alone."""
    folder, chiefs, _ = state
    moments = sorted({at for each in chiefs for at in each[2:5]})
    order = {at: number for number, at in enumerate(moments)}
    return folder, tuple((each.results, tuple(order[at] for at in each[2:5]), each.end) for each in chiefs)


def with_note(text: str, is_full: bool) -> Folder:
    """Return a folder in which a note is."""
    return Folder(((OWNER, 0),), (text,), is_full)


def note_of(owner: Owner) -> str:
    """Return the text of a chief's note."""
    return json.dumps(owner._asdict())
