"""Times as others read them: in UTC, with the offset, wherever this host and the reader are."""

from datetime import datetime, timezone


def utc(moment: float) -> str:
    """Return seconds since 1970 in ISO 8601: ``2026-11-20T15:59:02+00:00``."""
    return datetime.fromtimestamp(moment, timezone.utc).isoformat(timespec="seconds")
