"""The rule by which hosts remove past runs: the key ``keep`` of a hosts file, as a run's request carries it."""

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Retention:
    """The bounds of the runs of one name on a host; None for no bound.

    Attributes:
      runs: the number of newest runs that stay.
      days: the days after which a run goes that nobody has used.
      gib: the GiB that the runs of the name may take.
      spares_results: whether every run stays that has left more than logs and records.
    """

    runs: Optional[int] = None
    days: Optional[float] = None
    gib: Optional[float] = None
    spares_results: bool = False


DEFAULT = Retention(days=90.0, spares_results=True)  # where the file has no key ``keep``
