"""The settings that ``launch verify`` can compare with one process, and the reasons why others are excluded."""

from typing import Iterator, NamedTuple

from cluster.task import Train


class _Needed(NamedTuple):
    """The value that a key must have, and the reason."""

    key: str
    value: object
    why: str


_NEEDED = (
    _Needed("mode", "sync", "asynchronous steps have no order"),
    _Needed("replication", "between-graph", "with in-graph replication, one process already computes every step"),
    _Needed("backup_workers", 0, "the speed of the workers decides which gradients a step uses"),
    _Needed("local_steps", 1, "each worker trains on its own copy of the variables"),
    _Needed("wire", "float32", "gradients that are sent in 16 bits are rounded"),
)


def unverifiable(train: Train) -> Iterator[str]:
    """Yield a text for each setting that cannot be verified: the expected value, the value found, and the reason."""
    for key, value, why in _NEEDED:
        found = getattr(train, key)
        if found != value:
            yield (
                f"train.{key}: expected {value} for launch verify, found {found}: {why}; add --set train.{key}={value}"
            )
    if train.sync == "stock":
        yield (
            "train.sync: expected overlapped or plain for launch verify, found stock: TensorFlow's own optimizer adds"
            " gradients in any order; add --set train.sync=overlapped"
        )
