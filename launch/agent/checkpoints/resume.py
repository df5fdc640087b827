"""The checkpoint that a run's chief starts from: where it is, and how it gets into the chief's folder.

A chief restores the newest checkpoint of its folder, if one exists. So a new run needs an empty folder, and a resumed
run needs the checkpoint of the earlier run. This checkpoint is in the earlier run's own folder if that run's chief was
on this host. Otherwise it is among the copies that this host keeps.
"""

import contextlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from cluster.protocol.checkpoint_files import BEST, OWNER, list_checkpoints
from cluster.protocol.typed_json import to_values
from launch.agent.checkpoints import stored
from launch.agent.state import plan_file
from launch.agent.state.plan_file import KeptPlan
from launch.agent.state.run_folder import RunFolder, expand, name_of
from launch.agent.state.runs import generation, note_generation, runs
from launch.agent.wire.run_request import Wanted
from launch.agent.wire.verb_requests import HandoverRequest, HeldRequest, RunReference
from launch.status.run_history import RunHistory


def chief_folder(folder: RunFolder, directory: Optional[str]) -> Path:
    """Return the folder that the chief of a run saves into."""
    return folder.checkpoint if directory is None else Path(os.path.expanduser(directory))


def prepare(
    folder: RunFolder, name: str, directory: Optional[str], resume: bool, wanted: Optional[Wanted] = None
) -> None:
    """Prepare the chief's checkpoint folder for this run.

    Args:
      wanted: the checkpoint on this host to continue from; None for the newest one.

    Raises:
      ValueError: no checkpoint to resume from exists, or a new run would overwrite a checkpoint.
    """
    if directory is None:
        if resume:
            _carry_over(folder, name, wanted)
        return
    target = chief_folder(folder, directory)
    if resume and wanted is not None and wanted.run is not None:
        _copy(_found(_earlier(folder, name, directory), wanted)[1], target)
    held = stored.checkpoints(target)
    if held and not resume:
        raise ValueError(
            f"train.checkpoint.dir {directory} holds a checkpoint of step {held[-1].step}; "
            "continue from it with --resume, or name another folder"
        )
    if resume and not held:
        raise ValueError(f"nothing to resume: train.checkpoint.dir {directory} holds no complete checkpoint")
    with contextlib.suppress(OSError):  # else a second attempt takes the note of an ended run for that of a later one
        (target / OWNER).unlink()


def continued(folder: RunFolder, name: str, directory: Optional[str], wanted: Optional[Wanted]) -> RunHistory:
    """Return the learning curve of the earlier run that this run continues.

    The curve is empty if the earlier run's chief was on another host. If ``wanted`` has no run, the newest run counts.
    """
    of = None if wanted is None else wanted.run
    return _curve(next((run for run in _earlier(folder, name, directory) if of in (None, run.run)), None))


@dataclass(frozen=True)
class _Curve:
    """The field of a run's status that the next run continues."""

    history: RunHistory = field(default_factory=RunHistory)


def _curve(run: Optional[RunFolder]) -> RunHistory:
    status = None if run is None else run.read_record("status.json", _Curve)
    return RunHistory() if status is None else status.history


def held(request: HeldRequest) -> Dict[str, Any]:
    """Report the checkpoints to resume from.

    The answer is {"held": [{"run", "generation", "step", "bytes", "folder", "history", "record"}]}.

    If the request names a run, only checkpoints of that run count. ``history`` is the learning curve of the
    checkpoint's run, or of the newest run if the checkpoint's run is None. ``record`` has that run's arguments and its
    keys of ``train``. Both are empty if that run's chief was on another host.

    The list has at most three checkpoints. First, the newest in ``train.checkpoint.dir``; its run is None. Second, that
    of the newest run that left one. Third, the one with the highest step of all older runs, if that step is higher. No
    run resumes from the third, but the launcher reports it.
    """
    directory = request.checkpoint_dir
    folder = _host_folder(request.run)
    found: List[Tuple[Optional[RunFolder], stored.LocalCheckpoint]] = []
    if directory is not None:
        found += [(None, each) for each in stored.checkpoints(chief_folder(folder, directory))[-1:]]
    left = _left_by_runs(folder, request.run.name, directory)
    of_runs = [each for each in left if request.run.run in (None, each[0].run)]
    for run, _ in of_runs[:1]:
        with contextlib.suppress(OSError):  # marks the run as used, so no removal hits it before the start
            os.utime(str(run.own))
    furthest = sorted(of_runs[1:], key=lambda left: left[1].step)[-1:]
    found += [*of_runs[:1], *(left for left in furthest if left[1].step > of_runs[0][1].step)]
    newest = next(_earlier(folder, request.run.name, directory), None)
    return {"held": [{**_entry(run, each), **_continued_run(run or newest)} for run, each in found]}


def _continued_run(run: Optional[RunFolder]) -> Dict[str, Any]:
    from launch.status.run import RunRecord  # only here: a member's agent needs no status of a run

    args, train = plan_file.arguments(KeptPlan() if run is None else plan_file.read(run))
    known = RunRecord(run.run, name_of(run.run), args=args, train=train) if run and (args or train) else None
    return {"history": to_values(_curve(run)), "record": known and to_values(known)}


def _entry(run: Optional[RunFolder], checkpoint: stored.LocalCheckpoint) -> Dict[str, Any]:
    return {
        "run": run.run if run else None, "generation": generation(run) if run else 0,
        "step": checkpoint.step, "bytes": checkpoint.size(), "folder": str(checkpoint.folder),
    }  # fmt: skip


def source(request: HandoverRequest) -> stored.LocalCheckpoint:
    """Return the checkpoint of this host that the request names; ``held`` has reported it before.

    Raises:
      ValueError: the checkpoint does not exist any more.
    """
    directory, wanted = request.checkpoint_dir, request.wanted
    folder = _host_folder(request.run)
    if wanted.run is None:
        return _of(wanted, [stored.of_step(chief_folder(folder, directory), wanted.step)])
    return _found(_earlier(folder, request.run.name, directory), wanted)[1]


def receive(request: HandoverRequest) -> Path:
    """Prepare to receive a checkpoint from another host; return the folder for it, in which ``prepare`` looks.

    This host must know whether the checkpoint's run is newer than others, even if it took no part in that run. So the
    function stores the run's generation, which orders runs.
    """
    if request.checkpoint_dir is not None:
        return Path(os.path.expanduser(request.checkpoint_dir))
    folder = _host_folder(request.run, request.wanted.run or "")
    folder.own.mkdir(mode=0o700, parents=True, exist_ok=True)
    note_generation(folder, request.generation)
    return folder.replica


def _host_folder(reference: RunReference, run: str = "") -> RunFolder:
    return RunFolder(expand(reference.workdir), run, reference.host)


def _earlier(folder: RunFolder, name: str, directory: Optional[str]) -> Iterator[RunFolder]:
    """Yield the runs of this name that saved into the same place, newest first."""
    for earlier in runs(folder.workdir, name, folder.host):
        if earlier.run != folder.run and plan_file.read(earlier).checkpoint_dir == directory:
            yield earlier


def _in_run(run: RunFolder, directory: Optional[str]) -> Iterator[stored.LocalCheckpoint]:
    """Yield all checkpoints that a run left here; the chief's own follow the copies."""
    yield from stored.checkpoints(run.replica)
    if directory is None:
        yield from stored.checkpoints(run.checkpoint)


def _left_by_runs(
    folder: RunFolder, name: str, directory: Optional[str]
) -> Iterator[Tuple[RunFolder, stored.LocalCheckpoint]]:
    """Yield the newest checkpoint of each run that has left one, newest run first."""
    for run in _earlier(folder, name, directory):
        found = sorted(_in_run(run, directory), key=lambda each: each.step)
        if found:
            yield run, found[-1]


def _found(earlier: Iterator[RunFolder], wanted: Wanted) -> Tuple[RunFolder, stored.LocalCheckpoint]:
    """Return an earlier run, and its checkpoint ``wanted``.

    Raises:
      ValueError: the checkpoint does not exist any more.
    """
    run = next((run for run in earlier if run.run == wanted.run), None)
    if run is None:
        raise _gone(wanted)
    places = [run.checkpoint, run.replica]  # the chief's own checkpoint first
    return run, _of(wanted, [stored.of_step(place, wanted.step) for place in places])


def _of(wanted: Wanted, found: List[Optional[stored.LocalCheckpoint]]) -> stored.LocalCheckpoint:
    there = next((each for each in found if each is not None), None)
    if there is None:
        raise _gone(wanted)
    return there


def _gone(wanted: Wanted) -> ValueError:
    return ValueError(f"the checkpoint of step {wanted.step} of {wanted.run or 'train.checkpoint.dir'} is gone")


def _carry_over(folder: RunFolder, name: str, wanted: Optional[Wanted]) -> None:
    if wanted is not None:
        run, found = _found(_earlier(folder, name, None), wanted)
    else:
        left = next(_left_by_runs(folder, name, None), None)
        if left is None:
            raise ValueError(f"nothing to resume: no earlier run of {name} left a checkpoint on this host")
        run, found = left
    _copy_with_older(found, folder.checkpoint)
    _link_damaged(run, found.step, folder.checkpoint)


def _link_damaged(run: RunFolder, step: int, folder: Path) -> None:
    """Link the files of newer, damaged checkpoints: the chief reports these, and their steps count as lost."""
    for place in (run.replica, run.checkpoint):
        with contextlib.suppress(OSError):
            for each in list_checkpoints(place):
                if each.step > step and stored.of_step(place, each.step) is None:
                    link_all(stored.LocalCheckpoint(each.step, os.path.basename(each.path), place), folder)


def _copy_with_older(checkpoint: stored.LocalCheckpoint, folder: Path) -> None:
    """Copy a checkpoint and the older ones in its folder, newest first.

    The chief falls back on the older ones if it cannot read the newest.
    """
    older = [each for each in stored.checkpoints(checkpoint.folder) if each.step < checkpoint.step]
    _copy(checkpoint, folder, older[::-1])


def _copy(checkpoint: stored.LocalCheckpoint, folder: Path, fallbacks: Sequence[stored.LocalCheckpoint] = ()) -> None:
    link_all(checkpoint, folder)
    for each in fallbacks:
        with contextlib.suppress(OSError):  # the chief does not need these
            link_all(each, folder)
    with contextlib.suppress(OSError):  # missing without train.best, or for a copy on another host
        shutil.copyfile(str(checkpoint.folder / BEST), str(folder / BEST))
    with contextlib.suppress(OSError):  # for other programs; the chief writes it with every checkpoint
        stored.write_list(folder)


def link_all(checkpoint: stored.LocalCheckpoint, folder: Path) -> None:
    """Link the files of a checkpoint into ``folder``, or copy them where the file system has no links.

    Raises:
      OSError: a file cannot be linked or copied.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in checkpoint.files():
        _link(file, folder / file.name)


def _link(source: Path, target: Path) -> None:
    """Link a file, or copy it where the file system has no links; a link is safe since checkpoints never change."""
    with contextlib.suppress(FileNotFoundError):
        target.unlink()
    try:
        os.link(str(source), str(target))
    except OSError:
        shutil.copy2(str(source), str(target))
