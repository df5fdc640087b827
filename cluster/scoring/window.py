"""The newest examples of all workers: each worker packs its own as bytes, and the chief puts them together.

The bytes are a line of JSON with type and length of each column, and then the columns. A column of strings has the
length of each string first.
"""

import json
from typing import Any, List, Sequence

import numpy as np

MOST = 65_536  # examples of all workers
LEAST = 64  # of one worker


def share_of(workers: int) -> int:
    """Return how many examples one of ``workers`` keeps."""
    return max(LEAST, MOST // workers)


def pack(columns: Sequence[np.ndarray]) -> bytes:
    """Return columns of numbers, or of strings as bytes, in one text of bytes."""
    heads, bodies = [], []
    for each in columns:
        if each.dtype == object:
            lengths = np.array([len(text) for text in each], np.int64)
            heads.append(["bytes", len(each)])
            bodies += [lengths.tobytes(), *each.tolist()]
        else:
            heads.append([each.dtype.str, len(each)])
            bodies.append(each.tobytes())
    return json.dumps(heads).encode() + b"\n" + b"".join(bodies)


def unpack(data: bytes) -> List[np.ndarray]:
    """Undo ``pack``."""
    head, _, body = data.partition(b"\n")
    columns, start = [], 0

    def take(kind: Any, number: int) -> np.ndarray:
        nonlocal start
        found = np.frombuffer(body, kind, number, start)
        start += found.nbytes
        return found

    for kind, number in json.loads(head.decode()):
        if kind != "bytes":
            columns.append(take(kind, number))
            continue
        lengths = take(np.int64, number)
        texts = np.empty(number, object)
        for index, length in enumerate(lengths.tolist()):
            texts[index] = body[start : start + length]
            start += length
        columns.append(texts)
    return columns


def together(windows: Sequence[Sequence[np.ndarray]]) -> List[np.ndarray]:
    """Return the columns of several workers as one each."""
    return [np.concatenate(columns) for columns in zip(*windows)]
