"""Train each example exactly once per epoch: files are cut into shards, which workers receive one by one.

    def inputs(task, args):
        return shards.lines(task, sorted(glob.glob("/data/log-*.csv")), parse, shuffle=10000)

A shard is a file, or a range of a file's lines. The parameter servers hold the progress of each shard: the number of
its trained records. The progress changes in the same step as the variables, and is in the same checkpoint. So no
example is lost or trained twice, whatever process dies. In asynchronous training, the death of a process may let the
examples of one batch count twice.
"""

from functools import partial
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from cluster.model.job_results import COUNTS, PLACE
from cluster.recommend.once import shard_files
from cluster.recommend.once.arrivals import Arriving, ArrivingShards
from cluster.recommend.once.data_once import DataOnce, note_source
from cluster.recommend.once.shard_files import Reader, RecordBatch, Shard
from cluster.recommend.once.source import Source
from cluster.runtime.tf_compat import tf
from cluster.steps.extension import extend

SHARD_BYTES = 16 * 2**20
Parse = Callable[[Any], Dict[str, Any]]
Files = Union[Sequence[str], Arriving]


def arriving(pattern: str) -> Arriving:
    """Return the files at ``pattern``, in place of a list of paths: those that are there, and those that come later.

    Each file is trained once, whenever it arrives. Give a file its name when it is complete, and keep it until a
    checkpoint has it. Training goes on to ``train.steps``, and waits where there is no file.

    Args:
      pattern: of paths, as for ``glob.glob``; at least one file must be there when a worker starts.
    """
    return Arriving(pattern)


def lines(
    task: Any, files: Files, parse: Parse, *, shuffle: int = 0, seed: int = 0, shard_bytes: int = SHARD_BYTES
) -> Any:
    """Return a dataset of the lines of text files, for a job's ``inputs`` to return.

    Args:
      task: the task that ``inputs`` receives.
      files: paths, in the same order on every worker, or ``arriving(pattern)``; ``.gz`` files are unpacked.
      parse: a function from lines, a string tensor [batch] without line ends, to {name: tensor [batch, …]}.
      shuffle: the number of consecutive records of a shard to shuffle together; 0 leaves shards and records in order.
      seed: the seed of the order of shards and records.
      shard_bytes: the approximate size of a shard in bytes; a ``.gz`` file is one shard.

    Raises:
      OSError: a file cannot be read.
      ValueError: there is no record, there are too many shards, or an argument is out of its range.
    """
    if shard_bytes < 1:
        raise ValueError(f"shards.lines: expected shard_bytes of at least 1, found {shard_bytes}")
    cut = partial(shard_files.cut_file, shard_bytes=shard_bytes)
    return _dataset(_reader(task, files, cut, shard_files.read_lines, shuffle, seed, shard_bytes=shard_bytes), parse)


def records(task: Any, files: Files, read: shard_files.Read, parse: Parse, *, shuffle: int = 0, seed: int = 0) -> Any:
    """Return a dataset of the records of files in any format, for a job's ``inputs`` to return; each file is a shard.

    Args:
      read: a function that yields the records of the file at a path, as bytes, such as ``tf.io.tf_record_iterator``.
        It must always yield the same records in the same order.
      task, files, parse, shuffle, seed: as for ``lines``; ``parse`` receives records instead of lines.

    Raises:
      OSError: a file cannot be read.
      ValueError: there is no record, there are too many shards, or an argument is out of its range.
    """

    def read_shard(shard: Shard) -> Iterator[bytes]:
        return iter(read(shard.path))

    return _dataset(_reader(task, files, shard_files.whole_file, read_shard, shuffle, seed, shard_bytes=0), parse)


def _reader(
    task: Any, files: Files, cut: Callable[[str], Iterable[Shard]], read: Any, shuffle: int, seed: int, shard_bytes: int
) -> Reader:
    if shuffle < 0:
        raise ValueError(f"shards: expected shuffle of at least 0, found {shuffle}")
    if isinstance(files, str):
        raise ValueError(f"shards: expected a list of paths, or shards.arriving(pattern), found the string {files!r}")
    if isinstance(files, Arriving):
        found = ArrivingShards(files.pattern, cut, shard_bytes)
        return Reader(found, read, task.batch_size, shuffle, seed, found.sample(read))
    return Reader(shard_files.shards_of(map(str, files), cut), read, task.batch_size, shuffle, seed)


def _dataset(reader: Reader, parse: Parse) -> Any:
    source = Source(reader)
    size = reader.batch_size

    def batches(life: Any) -> Iterator[Tuple[List[bytes], int, List[int]]]:
        return map(_numbers, source.batches(int(life)))

    def parsed(found: Any, real: Any, place: Any) -> Dict[str, Any]:
        found.set_shape([size])
        counts = tf.cast(tf.sequence_mask(real, size), tf.float32)
        return {**parse(found), COUNTS: counts, PLACE: place}

    note_source(source)
    extend(DataOnce)
    # This runs whenever the dataset begins: what reads for a session that was given up is of another life.
    life = tf.py_func(source.new_life, [], tf.int64)
    life.set_shape([])
    kinds = (tf.string, tf.int32, tf.int64)
    shapes: Tuple[List[Optional[int]], ...] = ([None], [], [5])
    made = tf.data.Dataset.from_tensors(life).flat_map(
        lambda life: tf.data.Dataset.from_generator(batches, kinds, shapes, args=(life,))
    )
    return made.filter(lambda found, real, place: tf.size(found) > 0).map(parsed)


def _numbers(batch: Optional[RecordBatch]) -> Tuple[List[bytes], int, List[int]]:
    if batch is None:
        return [], 0, [0] * 5
    return batch.records, batch.real, [int(number) for number in batch.place]
