"""A history in print, with hosts as columns."""

from typing import Iterator, Optional

from tests.simulation.world import World

_WIDTH, _MOST = 34, 120  # of a column; of a text, which may run into the columns after its own


def columns(world: World, why: Optional[str]) -> Iterator[str]:
    """The lines of a history that is over; ``why`` is what went wrong."""
    hosts = list(world.operators.places)
    yield f"seed {world.seed}: {world.shape}"
    yield " " * 9 + "".join(host.ljust(_WIDTH) for host in ["-", *hosts])
    for entry in world.history:
        column = 1 + hosts.index(entry.host) if entry.host in hosts else 0
        yield f"{entry.at:8.2f} " + " " * (_WIDTH * column) + entry.text[:_MOST]
    yield f"{world.agenda.now:.1f} s: {why or 'every promise held'}; {world.digest}"
