"""The names of tasks: ``worker:1``, and with the host ``worker:1@gpu02``."""

from typing import Optional


def name_of(role: Optional[str], index: Optional[int]) -> str:
    """Return ``worker:1``."""
    return f"{role}:{index}"


def title_of(role: Optional[str], index: Optional[int], host: Optional[str]) -> str:
    """Return ``worker:1@gpu02``; without a role, ``gpu02`` or nothing."""
    return host or "" if role is None else f"{name_of(role, index)}@{host}"
