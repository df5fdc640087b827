"""The rules that tie ``elastic`` and ``spares`` to the rest of a hosts file."""

from typing import Any, Dict, Iterator, Optional

from cluster.errors import Problem
from cluster.spec.document import Document
from cluster.spec.validation import Findings


def elastic_rules(document: Document, findings: Findings, workers: Optional[int]) -> Iterator[Problem]:
    """Yield every problem of ``elastic`` and ``spares``.

    Args:
      workers: the number of tasks that compute gradients; None where that could not be read.
    """
    if document.value.get("spares") and document.value.get("elastic") is None:
        expected, hint = "elastic beside spares", "add elastic: {min_workers: 1}, or leave spares out"
        yield document.problem(("spares",), expected, "none", hint, at_key=True)
    if document.value.get("elastic") is None or not findings.fit("elastic"):
        return
    yield from _unfit(document, findings)
    if findings.fit("train", "backup_workers"):
        yield from _min_workers(document, workers)


def _unfit(document: Document, findings: Findings) -> Iterator[Problem]:
    """Yield a problem for each setting that ``elastic`` excludes.

    An elastic run starts again from a checkpoint, and its tasks take their cluster from ``TF_CONFIG``.
    """
    if document.value.get("command") is not None:
        found, hint = "command", "leave elastic out: the launcher does not know this program's checkpoints"
        yield document.problem(("elastic",), "a job", found, hint, at_key=True)
    train: Any = document.value.get("train")
    if findings.fit("train", "replication") and (train or {}).get("replication") == "in-graph":
        found, hint = "in-graph", "leave elastic out, or train between-graph"
        yield document.problem(("train", "replication"), "between-graph with elastic", found, hint)
    if findings.fit("train", "sync") and (train or {}).get("sync") == "stock":
        hint = "leave elastic out, or train with sync: plain"
        yield document.problem(("train", "sync"), "overlapped or plain with elastic", "stock", hint)


def _min_workers(document: Document, workers: Optional[int]) -> Iterator[Problem]:
    train: Dict[str, Any] = document.value.get("train") or {}
    least, backups = document.value["elastic"]["min_workers"], train.get("backup_workers", 0)
    if workers is not None and least > workers:
        expected = f"at most as many as there are workers ({workers})"
        yield document.problem(("elastic", "min_workers"), expected, str(least))
    elif backups and least <= backups:
        expected = f"more than train.backup_workers ({backups})"
        yield document.problem(("elastic", "min_workers"), expected, str(least))
