"""Slurm for fixtures."""

from contextlib import contextmanager
from typing import Iterator

import pytest

from tests.support.hosts import needs
from tests.support.hosts.fixture import hosts_here
from tests.support.slurm.cluster import Slurm


@contextmanager
def slurm_here(nodes: int) -> Iterator[Slurm]:
    """Slurm on fresh hosts until the end of the block. Skips where this machine cannot have it."""
    missing = needs.lacking("munged", "slurmctld", "slurmd", "srun")
    if missing:
        pytest.skip(f"needs slurm: this machine lacks {'; '.join(missing)}")
    with hosts_here(nodes) as hosts:
        yield Slurm(hosts)
