"""What can go wrong: each kind of fault with where and when it may happen, and how a run may be set then.

A *moment* is an event of the run, not a time:

    start       the first process of the run is there
    step        the global step is at least the fault's step
    checkpoint  a checkpoint has just been begun, or written: as soon as a new file is in the folder
    teardown    the last step was taken
"""

from typing import Dict, FrozenSet, NamedTuple, Tuple

CHIEF, WORKER, PS = "worker:0", "worker:1", "ps:0"
NOBODY = ""  # where nothing happens, at no moment
HOST_OF: Dict[str, str] = {CHIEF: "h1", WORKER: "h2", PS: "h3"}
SPARE = "h4"
HOSTS = ("h1", "h2", "h3", SPARE)
START, STEP, CHECKPOINT, TEARDOWN = "start", "step", "checkpoint", "teardown"
_ALWAYS = (START, STEP, CHECKPOINT, TEARDOWN)
_MIDST = (STEP, CHECKPOINT)
_MODES = frozenset(["sync", "async", "backup"])
_UNSTOPPED = _MODES - {"sync"}  # where training goes on without a worker


class Kind(NamedTuple):
    """One kind of fault.

    ``targets``: tasks or hosts; ``incident``: the kinds under which a report may name it, none where nothing is
    to be told; ``pairs``: whether a run survives it whatever else happens, so that it may come beside another;
    ``long``: in which modes the run has to be longer, as what follows takes some fifteen seconds in which it goes on.
    """

    words: str
    targets: Tuple[str, ...]
    moments: Tuple[str, ...]
    incident: Tuple[str, ...]
    elastic: Tuple[bool, ...] = (False,)
    detached: Tuple[bool, ...] = (False,)
    pairs: bool = False
    long: FrozenSet[str] = frozenset()


KINDS: Dict[str, Kind] = {
    "none": Kind("nothing happens", (NOBODY,), (STEP,), ()),
    "kill": Kind("{} is killed", (WORKER, CHIEF, PS), _ALWAYS, ("signal",), pairs=True),
    "raise": Kind("the job of {} raises once", (WORKER, CHIEF), (START, STEP), ("exception",), pairs=True),
    "fail": Kind("the job of {} always raises", (WORKER, CHIEF), (START, STEP), ("exception",)),
    "nan": Kind("{} meets a NaN", (WORKER, CHIEF), (STEP,), ("non-finite",)),
    "freeze": Kind("{} is stopped by a signal", (WORKER, CHIEF, PS), _MIDST, ("frozen",), pairs=True, long=_UNSTOPPED),
    "hang": Kind("the inputs of {} never come", (WORKER, CHIEF), (STEP,), ("frozen",), long=_UNSTOPPED),
    "agent": Kind(
        "the agent on {} is killed", ("h2", "h3", "h1"), (STEP,), ("agent", "host"), pairs=True, long=_UNSTOPPED
    ),
    "agent-detached": Kind(
        "the agent on {} is killed, and no launcher is there", ("h2", "h3", "h1"), (STEP,), ("agent", "host"),
        detached=(True,), long=_UNSTOPPED,
    ),
    "launcher": Kind("the launcher of {} is killed", ("the run",), (START, STEP, TEARDOWN), (), long=_MODES),
    "launcher-detached": Kind("the launcher of {} leaves", ("the run",), (STEP,), (), detached=(True,)),
    "power": Kind("{} loses power", ("h2", "h3", "h1"), _ALWAYS, ("host",), long=_UNSTOPPED),
    "power-elastic": Kind("{} loses power", ("h2", "h3"), _MIDST, ("host",), elastic=(True,), long=_UNSTOPPED),
    "power-returns": Kind("{} loses power, and boots again", ("h2",), (STEP,), ("host",), elastic=(True,), long=_MODES),
    "cable-short": Kind("{} is cut off for 3 s", ("h2", "h3", "h1"), _MIDST, (), pairs=True),
    "cable": Kind("{} is cut off for good", ("h2", "h3"), (STEP,), ("host",), long=_UNSTOPPED),
    "cable-elastic": Kind(
        "{} is cut off for good", ("h2", "h3"), (STEP,), ("host",), elastic=(True,), long=_UNSTOPPED
    ),
    "cable-returns": Kind("{} is cut off for 25 s", ("h2",), (STEP,), ("host",), elastic=(True,), long=_MODES),
    "disk-full": Kind("the checkpoints' disk on {} is full for 5 s", ("h1",), (STEP,), ("checkpoint",)),
    "folder-gone": Kind("the checkpoint folder on {} is removed", ("h1",), _MIDST, ()),
    "clock": Kind("the clock of {} jumps", ("h1", "h2", "h3"), (START, STEP), (), pairs=True),
    "operators": Kind("an operator in another time zone led {} before", ("the run",), (STEP,), ()),
    "purge": Kind(
        "all shipped code on the host of {0} is removed, then {0} is killed", (WORKER, CHIEF, PS), (STEP,), ("signal",),
        pairs=True,
    ),
    "setsid": Kind(
        "{} starts a process in a session of its own, and is killed", (WORKER, CHIEF), (STEP,), ("signal",), pairs=True
    ),
    "suspend": Kind("the launcher of {} is suspended for 25 s", ("the run",), (STEP,), (), long=_MODES),
    "truncated": Kind(
        "the newest checkpoint is cut short, then {} is killed", (PS,), (STEP,), ("signal", "checkpoint")
    ),
}  # fmt: skip
EVERY: FrozenSet[str] = frozenset(KINDS)


class Fault(NamedTuple):
    """One fault of a trial. ``step``: not before this global step; it counts at the moments step and checkpoint."""

    kind: str
    target: str
    moment: str
    step: int

    @property
    def host(self) -> str:
        """The host that the fault happens on."""
        return HOST_OF.get(self.target, self.target)

    def __str__(self) -> str:
        what = KINDS[self.kind].words.format(self.target)
        if self.target == NOBODY:
            return what
        when = {START: "during the start", TEARDOWN: "after the last step"}.get(
            self.moment, f"from step {self.step} on"
        )
        during = " as a checkpoint is written" if self.moment == CHECKPOINT else ""
        return f"{what} {when}{during}"
