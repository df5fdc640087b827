"""Times as a person writes them."""

import re
from datetime import datetime, timedelta

from launch.errors import UsageError

_AGO = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment(text: str, now: datetime) -> float:
    """Return a time as seconds since 1970; without a zone, the time is local.

    The text is ``10m`` (ago), ``15:59`` (today) or ``2026-11-20T15:59:02``.

    Raises:
      UsageError: the text is none of them.
    """
    ago = _AGO.fullmatch(text)
    if ago:
        # From the timestamp: a datetime less ten minutes no longer knows which of autumn's two equal hours it is in.
        return now.timestamp() - timedelta(**{_UNITS[ago.group(2)]: float(ago.group(1))}).total_seconds()
    try:
        return _written(text, now).timestamp()
    except ValueError:
        raise UsageError(
            f"TIME: expected 30s, 10m, 2h or 1d (ago), 15:59 (today) or 2026-11-20T15:59:02, found {text!r}"
        ) from None


def _written(text: str, now: datetime) -> datetime:
    if re.fullmatch(r"\d\d?:\d\d(:\d\d)?", text):
        return datetime.fromisoformat(f"{now:%Y-%m-%d} {text if text[1] != ':' else '0' + text}")
    return datetime.fromisoformat(text)
