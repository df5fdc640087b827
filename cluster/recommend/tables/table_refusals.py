"""Refuse, before training, what cannot be done right with embedding tables."""

from typing import Any, Sequence

from cluster.embedding import Lookup
from cluster.errors import JobError
from cluster.job import Job
from cluster.runtime.subgraph import needs_state
from cluster.task import Train
from cluster.variables.uses import uses


def refuse(lookups: Sequence[Lookup], job: Job, train: Train, is_elementwise: bool) -> None:
    """Refuse tables that are used in a way, or with settings, for which there is no right step.

    Raises:
      JobError: they are, or there are none and a setting needs some.
    """
    settings = {
        "train.backup_workers": train.backup_workers > 0,
        "launch verify and train.clip_norm": train.verify and train.clip_norm is not None,
        "an optimizer of your own": not is_elementwise,
    }
    refuse_settings_of_none(lookups, job, train)
    for name, is_so in settings.items():
        refuse_anywhere(lookups if is_so else [], job, name)
    for each in lookups:
        _refuse_other_uses(each, [other.rows for other in lookups], job)


def refuse_settings_of_none(lookups: Sequence[Lookup], job: Job, train: Train) -> None:
    """Refuse settings of tables for a model without tables. Raises JobError."""
    given = {
        "train.checkpoint.delta_every_s": train.checkpoint.delta_every_s is not None,
        "train.table_staleness": train.table_staleness > 0,
    }
    for key, is_given in given.items():
        if is_given and not lookups:
            raise JobError(f"{job.path}: expected embedding tables for {key}, found none; leave out the key")


def refuse_staleness(lookups: Sequence[Lookup], job: Job, boundary: Sequence[Any], has_shards: bool) -> None:
    """Refuse ``train.table_staleness`` where ids are not known before their step, or where examples are counted.

    Args:
      lookups: of a training step.
      boundary: the tensors of its batch.

    Raises:
      JobError: the key cannot be used with them.
    """
    key = "train.table_staleness"
    job.check("inputs", f"a dataset of its own with {key}", "one of cluster.shards", not has_shards)
    for each in lookups:
        state = needs_state([each.ids], boundary)
        found = f"ids for the table {each.table.name!r} that also need {', '.join(op.name for op in state[:3])}"
        job.check("model", f"ids that its batch alone gives, with {key}", found, not state)


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
