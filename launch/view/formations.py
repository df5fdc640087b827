"""Describe the hosts that an elastic run trains on."""

from typing import List

from launch.status.run import RunStatus


def formation(status: RunStatus) -> List[str]:
    """Return a run's formation in a line; nothing while the run is as it began.

    Example: ``formation 2: 3 of 4 workers, 2 of 2 ps; without gpu03``.
    """
    told = status.formation
    if not told or not (told.number or told.without or told.forming):
        return []
    sizes = f"{told.workers} of {told.of_workers} workers, {told.ps} of {told.of_ps} ps"
    without = f"; without {', '.join(told.without)}" if told.without else ""
    forming = "; ending before the next formation" if told.forming else ""
    return [f"formation {told.number}: {sizes}{without}{forming}"]
