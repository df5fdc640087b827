"""Files that arrive while training goes on: a log that never ends.

A file counts from the moment at which it has a name that fits the pattern: its writer gives it that name when it is
complete. The chief looks for new files. It cuts them into shards, and writes a digest of each into the next free
place on ``ps:0``: of the file's size, of its path below the folders without a wildcard, and of the range of bytes. So a
shard has the same number on every worker, and in a checkpoint. A worker finds the digest of its shard among its own
files.

The place of a shard that is trained is used again when the shard's file is gone.
"""

import contextlib
import glob
import os
import threading
import time
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Tuple

import numpy as np

from cluster.errors import TrainingError
from cluster.recommend.once.shard_files import Shard, digest_of
from cluster.runtime.server_state import locked
from cluster.runtime.tf_compat import tf

MOST_ARRIVED = 1 << 16  # shards that wait, or whose files are there
LOOK_S = 2.0  # between two looks for files
_WAIT_S = 120.0  # for a file that the chief has found: another host may see it later
_POLL_S = 0.5
NO_SHARD = 0  # in place of a digest


class Arriving(NamedTuple):
    """The files whose paths match ``pattern``, now or later."""

    pattern: str


class ArrivingShards:
    """The shards of a worker's files by their numbers, which the servers give to them.

    Args:
      pattern: of the files' paths, as for ``glob``.
      cut: a function that yields the shards of a file.
      shard_bytes: the size by which it cuts; 0 where each file is a shard.
    """

    def __init__(self, pattern: str, cut: Callable[[str], Iterable[Shard]], shard_bytes: int):
        self._pattern, self._cut, self.shard_bytes = pattern, cut, shard_bytes
        self._root = os.path.dirname(pattern)  # below it, all hosts have the same names
        while glob.has_magic(self._root):
            self._root = os.path.dirname(self._root)
        self._found: Dict[str, Dict[int, Shard]] = {}  # by path, of the files that are there
        self._there: Dict[int, Shard] = {}
        self._written: Dict[str, float] = {}
        self._looking = threading.Lock()  # the chief has a thread that looks, and one that reads
        self._digests: Dict[int, int] = {}  # by the shard's number
        self._awaits_until = 0.0

    def __len__(self) -> int:
        return MOST_ARRIVED

    @property
    def awaits_file(self) -> bool:
        """Return whether a file that the chief has found may still come to this host, and is needed."""
        return time.monotonic() < self._awaits_until

    def learn(self, digests: Dict[int, int]) -> None:
        """Take the digests of some shards from the servers, by the numbers of the shards."""
        self._digests.update(digests)

    def look(self) -> Dict[int, Shard]:
        """Return the shards of all files that are there, by their digests, in the order of the files' names."""
        with self._looking:
            paths = sorted(glob.glob(self._pattern))
            self._found = {path: self._found.get(path) or self._shards(path) for path in paths}
            self._written = {path: self._written[path] for path in paths if path in self._written}
            self._there = {digest: shard for shards in self._found.values() for digest, shard in shards.items()}
            return self._there

    def age_s(self, digests: List[int]) -> float:
        """Return for how many seconds the oldest file of some shards is there, by its own time."""
        now, there, written = time.time(), self._there, self._written  # the other thread may look meanwhile
        paths = {there[digest].path for digest in digests if digest in there}
        return max((max(0.0, now - written.get(path, now)) for path in paths), default=0.0)

    def _shards(self, path: str) -> Dict[int, Shard]:
        if os.path.isdir(path):
            return {}
        try:
            size, shards = os.path.getsize(path), list(self._cut(path))
            self._written[path] = os.path.getmtime(path)
        except FileNotFoundError:  # it has just gone
            return {}
        name = os.path.relpath(path, self._root or os.curdir)
        return {digest_of(name, size, each.begin, each.end): each for each in shards}

    def sample(self, read: Callable[[Shard], Iterable[bytes]]) -> bytes:
        """Return any record; ``read`` yields those of a shard.

        Raises:
          TrainingError: there is no file with records.
        """
        for shard in self.look().values():
            with contextlib.suppress(FileNotFoundError):  # it has just gone
                for record in read(shard):
                    return record
        raise TrainingError(f"shards: expected at least one file with records at {self._pattern}, found none")

    def __getitem__(self, number: int) -> Shard:
        """Return the shard with a number, whose digest is known.

        Raises:
          TrainingError: this host does not have its file, even after a while.
        """
        digest, until = self._digests[number], time.monotonic() + _WAIT_S
        shard = self._there.get(digest) or self.look().get(digest)
        while shard is None:
            self._awaits_until = until
            if time.monotonic() > until:
                raise TrainingError(
                    f"shards: expected the file of shard {number} at {self._pattern}, found none of its name and size"
                    f" in {_WAIT_S:.0f} s; each worker needs all files until they are trained, with the same content"
                )
            time.sleep(_POLL_S)
            shard = self.look().get(digest)
        self._awaits_until = 0.0
        return shard


class Registrar:
    """The chief's search for new files, whose shards it registers on the servers.

    Args:
      shards: the chief's.
      digests: of the shards on the servers, [most]; ``NO_SHARD`` for a free place.
      register: writes digests into places: (numbers of the places, digests).
      uses: returns how many shards of each place are trained, int64 [most]; -1 where one is not.
      waiting: returns the digests of the shards that have records to train.
      lag: gets the metrics of a look: ``waiting_shards``, and ``lag_s``, the age of the oldest of their files.
    """

    def __init__(
        self,
        shards: ArrivingShards,
        digests: np.ndarray,
        register: Callable[[List[int], List[int]], None],
        uses: Callable[[], np.ndarray],
        waiting: Callable[[], List[int]],
        lag: Dict[str, float],
    ):
        self._waiting, self._lag = waiting, lag
        self._shards, self._digests, self._register, self._uses = shards, digests.copy(), register, uses

    def look(self) -> None:
        """Register the shards of new files, and measure how far training is behind.

        Raises:
          TrainingError: there is no free place.
        """
        self._register_new(self._shards.look())
        waiting = self._waiting()
        self._lag.update(waiting_shards=float(len(waiting)), lag_s=self._shards.age_s(waiting))

    def _register_new(self, found: Dict[int, Shard]) -> None:
        known = set(self._digests.tolist())
        new = [digest for digest in found if digest not in known]
        if not new:
            return
        places = np.flatnonzero(self._digests == NO_SHARD)
        if len(places) < len(new):
            gone = np.array([digest not in found for digest in self._digests.tolist()])
            uses = self._uses()
            again = np.flatnonzero((self._digests != NO_SHARD) & gone & (uses >= 0))
            # Workers train first what has the fewest uses: so what arrived earlier comes earlier.
            places = np.concatenate([places, again[np.argsort(uses[again], kind="stable")]])
        if len(places) < len(new):
            raise TrainingError(
                f"shards: expected at most {len(self._digests):,} shards of files that are there, found"
                f" {len(new) - len(places):,} more; use larger shards, or remove files that are trained"
            )
        chosen = places[: len(new)]
        self._register(chosen.tolist(), new)
        self._digests[chosen] = new
        files = sorted({found[digest].path for digest in new})
        shown = ", ".join([*(os.path.basename(path) for path in files[:3]), *["…"] * (len(files) > 3)])
        print(f"shards: {len(new)} of {len(files)} new files: {shown}", flush=True)


class Registering:
    """The operation that registers shards on ``ps:0``, in the chief's graph and on the current device.

    It writes one number for each shard, so a checkpoint has a shard's digest or has it not. It does nothing where a
    newer life of the chief has begun (``shard_places``): that registers the same shards.

    Args:
      places: the variable of the shards' digests; for each, whether it has records to train, whether no worker has it,
        and the number of the place's shards that are trained.
      mutex, life: the lock of the places, and the placeholder for the number of the chief's life.
      is_newest: makes the tensor whether this life is the newest.
    """

    def __init__(self, places: Tuple[Any, Any, Any, Any], mutex: Any, life: Any, is_newest: Callable[[], Any]):
        digests, is_trainable, is_free, uses = places
        self._places, self._new = (tf.placeholder(tf.int64, [None]) for _ in range(2))
        may_go = tf.logical_and(is_free, tf.logical_not(is_trainable))
        self._uses = tf.where(may_go, uses, tf.fill(tf.shape(uses), tf.constant(-1, tf.int64)))
        self._waiting = tf.boolean_mask(digests.read_value(), is_trainable)

        def work() -> List[Any]:
            number = tf.size(self._places) * tf.cast(is_newest(), tf.int32)
            return [tf.scatter_update(digests, self._places[:number], self._new[:number]).op]

        self._done, _ = locked(mutex, [life, self._places, self._new], work)

    def registrar(
        self, shards: ArrivingShards, digests: np.ndarray, ask: Callable[..., Any], lag: Dict[str, float]
    ) -> Registrar:
        """Return the registrar of one life of the chief; ``ask`` runs an operation with further fed values."""

        def register(places: List[int], new: List[int]) -> None:
            ask(self._done, {self._places: places, self._new: new})

        return Registrar(shards, digests, register, lambda: ask(self._uses), lambda: ask(self._waiting).tolist(), lag)
