"""Refuse, before training, what cannot be done right with embedding tables."""

from typing import Any, Sequence

from cluster.embedding import Lookup
from cluster.job import Job
from cluster.task import Train
from cluster.variables.uses import uses


def refuse(lookups: Sequence[Lookup], job: Job, train: Train, is_elementwise: bool) -> None:
    """Refuse tables that are used in a way, or with settings, for which there is no right step.

    Raises:
      JobError: they are.
    """
    settings = {
        "train.backup_workers": train.backup_workers > 0,
        "launch verify": train.verify,
        "an optimizer of your own": not is_elementwise,
    }
    for name, is_so in settings.items():
        refuse_anywhere(lookups if is_so else [], job, name)
    for each in lookups:
        _refuse_other_uses(each, [other.rows for other in lookups], job)


def refuse_anywhere(lookups: Sequence[Lookup], job: Job, what: str) -> None:
    """Refuse all tables.

    Args:
      what: cannot be done with tables.

    Raises:
      JobError: there are lookups.
    """
    found = f"the table {lookups[0].table.name!r}" if lookups else "none"
    job.check("model", f"no embedding tables with {what}", found, not lookups)


def _refuse_other_uses(lookup: Lookup, known: Sequence[Any], job: Job) -> None:
    name = lookup.table.name
    for op, _ in uses(lookup.variable):
        found = f"the whole table {name!r}, taken by {op.name}"
        job.check("model", "rows of embedding tables, by embedding.lookup", found, op in known)
