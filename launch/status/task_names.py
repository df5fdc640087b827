"""How tasks are called: ``worker:1``, and with its host ``worker:1@gpu02``."""

from typing import Optional


def name_of(role: Optional[str], index: Optional[int]) -> str:
    """Return ``worker:1``."""
    return f"{role}:{index}"


def title_of(role: Optional[str], index: Optional[int], host: Optional[str]) -> str:
    """Return ``worker:1@gpu02``; of what is no task, ``gpu02`` or nothing."""
    return host or "" if role is None else f"{name_of(role, index)}@{host}"
