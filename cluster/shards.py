"""Train each example exactly once per epoch: files are cut into shards, which workers receive one by one.

    def inputs(task, args):
        return shards.lines(task, sorted(glob.glob("/data/log-*.csv")), parse, shuffle=10000)

A shard is a file, or a range of a file's lines. The parameter servers hold the progress of each shard: the number of
its trained records. The progress changes in the same step as the variables, and is in the same checkpoint. So no
example is lost or trained twice, whatever process dies. In asynchronous training, the death of a process may let the
examples of one batch count twice.
"""

from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from cluster.model.job_results import COUNTS, PLACE
from cluster.recommend.once import shard_files
from cluster.recommend.once.data_once import DataOnce, note_source
from cluster.recommend.once.shard_files import Reader, RecordBatch, Shard
from cluster.recommend.once.source import Source
from cluster.runtime.tf_compat import tf
from cluster.steps.extension import extend

SHARD_BYTES = 16 * 2**20
Parse = Callable[[Any], Dict[str, Any]]


def lines(
    task: Any, files: Sequence[str], parse: Parse, *, shuffle: int = 0, seed: int = 0, shard_bytes: int = SHARD_BYTES
) -> Any:
    """Return a dataset of the lines of text files, for a job's ``inputs`` to return.

    Args:
      task: the task that ``inputs`` receives.
      files: paths, in the same order on every worker; ``.gz`` files are unpacked.
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
    cut = shard_files.cut_lines(_paths(files), shard_bytes)
    return _dataset(_reader(task, cut, shard_files.read_lines, shuffle, seed), parse)


def records(
    task: Any, files: Sequence[str], read: shard_files.Read, parse: Parse, *, shuffle: int = 0, seed: int = 0
) -> Any:
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

    return _dataset(_reader(task, shard_files.whole_files(_paths(files)), read_shard, shuffle, seed), parse)


def _paths(files: Sequence[str]) -> List[str]:
    if isinstance(files, str):
        raise ValueError(f"shards: expected a list of paths, found the string {files!r}")
    return [str(path) for path in files]


def _reader(task: Any, cut: Sequence[Shard], read: Any, shuffle: int, seed: int) -> Reader:
    if shuffle < 0:
        raise ValueError(f"shards: expected shuffle of at least 0, found {shuffle}")
    return Reader(cut, read, task.batch_size, shuffle, seed)


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
