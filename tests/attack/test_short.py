"""A run trains on while another user of its lead's host and a neighbour attack it; all attacks: ``make attack``."""

from pathlib import Path
from typing import Iterator

import pytest

from tests.attack.attacks import short
from tests.attack.siege import LEAD_PORT, Attack, Siege, planted
from tests.support.hosts.fixture import hosts_here

ATTACKS = short(LEAD_PORT)


@pytest.fixture(scope="module")
def siege(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Siege]:
    folder: Path = tmp_path_factory.mktemp("siege")
    with hosts_here(3) as hosts:
        siege = Siege(hosts, folder)
        result = planted(siege)
        assert not result.through, result
        with siege.up():
            yield siege


@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.title for attack in ATTACKS])
def test_an_attack_does_not_get_through(siege: Siege, attack: Attack) -> None:
    result = siege.carry_out(attack)
    assert not result.through, result
