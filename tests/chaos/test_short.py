"""Some trials on fake hosts: processes killed or frozen, a disk full; make chaos has as many as wanted."""

from pathlib import Path
from typing import Iterator

import pytest

from tests.chaos.arena import Arena
from tests.chaos.faults import HOSTS
from tests.chaos.trial import plan_trial
from tests.support.hosts.fixture import hosts_here


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    with hosts_here(len(HOSTS)) as hosts:
        folder: Path = tmp_path_factory.mktemp("chaos")
        yield Arena(hosts, folder)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "seed"), [("kill", 6), ("freeze", 13), ("disk-full", 9)])
def test_a_run_meets_its_faults_and_ends_as_it_should(arena: Arena, kind: str, seed: int) -> None:
    trial = plan_trial(seed, [kind])
    result = arena.carry_out(trial)
    assert not result.complaints, "\n".join([str(trial), *result.story, *result.complaints, f"files: {result.files}"])
