"""The result of building a job's graph on a host before its tasks start."""

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class GraphAnswer:
    """The result of the verb ``graph``, whose request is a ``RunRequest`` with the chief alone.

    Attributes:
      cause: the reason why the job's graph cannot be built, as a task reports it; None where it can, or was not tried.
    """

    cause: Optional[str] = None
