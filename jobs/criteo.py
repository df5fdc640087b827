"""The file format of Criteo's click logs, and made-up examples in this format.

A line is one shown advertisement, with 40 fields separated by tabs; an unknown field is empty:

    label (1: clicked)   13 whole numbers   26 categories, each of 8 hexadecimal digits

Files are plain or gzipped (``day_0.gz``). One line in ten, chosen by a hash of its text, is held out. So every reader
holds out the same lines.
"""

import functools
import os
from typing import Any, Dict, List, Mapping

import numpy as np
import tensorflow.compat.v1 as tf

from cluster.errors import MissingDataError
from cluster.task import Task

NUMBERS, CATEGORIES = 13, 26
_HELD_OUT_OF = 10
_MADE_UP = 20000  # examples, without files


def lines(task: Task, args: Mapping[str, Any], held_out: bool) -> Any:
    """Return one worker's share of the lines to train on, or all lines that are held out.

    Workers divide the files of ``args.data_dir`` if each worker gets equally many; else they divide the lines.

    Raises:
      MissingDataError: the folder has no file.
    """
    workers = 1 if held_out else task.num_workers
    files = files_in(str(args["data_dir"])) if args.get("data_dir") else []
    by_file = bool(files) and len(files) % workers == 0
    if files:
        data = _read(files[task.worker_index % workers :: workers] if by_file else files)
    else:
        data = tf.data.Dataset.from_tensor_slices(made_up(_MADE_UP, int(args.get("seed", 0))))
    data = data.filter(lambda line: tf.equal(is_held_out(line), held_out))
    return data if by_file else data.shard(workers, task.worker_index % workers)


def is_held_out(line: Any) -> Any:
    """Return whether ``line`` is held out for evaluation, as a bool scalar."""
    return tf.equal(tf.strings.to_hash_bucket_fast(line, _HELD_OUT_OF), 0)


def files_in(folder: str) -> List[str]:
    """Return the paths of all files in a folder, without hidden files, sorted by name.

    Raises:
      MissingDataError: the folder has no such file.
    """
    folder = os.path.expanduser(folder)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    paths = [os.path.join(folder, name) for name in names if not name.startswith(".")]
    found = [path for path in paths if os.path.isfile(path)]
    if not found:
        raise MissingDataError(
            f"args.data_dir: expected files of Criteo's format, such as day_0.gz, in {folder} on every worker's host,"
            " found none; without data_dir, the job trains on made-up examples"
        )
    return found


def _read(files: List[str]) -> Any:
    def opened(file: Any) -> Any:
        packed = tf.strings.regex_full_match(file, r".*\.gz")
        return tf.data.TextLineDataset(file, tf.where(packed, "GZIP", ""))

    return tf.data.Dataset.from_tensor_slices(files).flat_map(opened)


def parse(batch: Any) -> Dict[str, Any]:
    """Parse ``batch``, lines [n]: label float32 [n], numbers float32 [n, 13], categories string [n, 26].

    A number x of a line becomes log(1 + x), and 0 if x is negative. A category begins with its column, ``3:68fd1e64``,
    so that equal values of two columns differ.
    """
    defaults: List[List[Any]] = [[0.0]] * (1 + NUMBERS) + [[""]] * CATEGORIES
    fields = tf.io.decode_csv(batch, defaults, field_delim="\t", use_quote_delim=False)
    categories = [tf.strings.join([f"{column}:", value]) for column, value in enumerate(fields[1 + NUMBERS :])]
    numbers = tf.math.log1p(tf.maximum(tf.stack(fields[1 : 1 + NUMBERS], 1), 0.0))
    return {"label": fields[0], "numbers": numbers, "categories": tf.stack(categories, 1)}


@functools.lru_cache(maxsize=1)  # for training and for evaluation
def made_up(examples: int, seed: int) -> List[str]:
    """Return ``examples`` lines. The label depends on some numbers, some categories, a pair of these, and chance."""
    random = np.random.RandomState(seed)
    numbers = np.floor(np.exp(random.normal(1, 1.5, [examples, NUMBERS]))).astype(int)
    categories = np.minimum(random.zipf(1.3, [examples, CATEGORIES]), 200) + 1000 * np.arange(CATEGORIES)
    weights = random.normal(0, 1, [5, 26 * 1000])
    evidence = np.log1p(numbers[:, :3]) @ np.array([0.6, -0.6, 0.4]) - 0.5
    evidence += sum(weights[column, categories[:, column]] for column in range(4))
    evidence += 2 * weights[4, (categories[:, 4] * 7 + categories[:, 5]) % 26000]
    labels = (random.uniform(size=examples) < 1 / (1 + np.exp(-evidence))).astype(int)
    known = random.uniform(size=[examples, NUMBERS + CATEGORIES]) > 0.05
    return [_line(*row) for row in zip(labels, numbers, categories, known)]


def _line(label: int, numbers: Any, categories: Any, known: Any) -> str:
    texts = [str(number) for number in numbers] + [
        f"{category * 2654435761 % (1 << 32):08x}" for category in categories
    ]
    return "\t".join([str(label), *(text if there else "" for text, there in zip(texts, known))])
