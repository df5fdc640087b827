"""Amounts as people read them: three figures and a unit."""

_BYTES = ("bytes", "kB", "MB", "GB", "TB")
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def of_bytes(number: float) -> str:
    """Return ``27.1 MB``; a thousand bytes are a kB."""
    for unit in _BYTES:
        if number < 999.5 or unit == _BYTES[-1]:
            break
        number /= 1000
    return f"{number:.0f} {unit}" if unit == "bytes" else f"{_three(number)} {unit}"


def of_seconds(seconds: float) -> str:
    """Return ``1.35 s``, ``217 ms``."""
    scale, unit = next(((scale, unit) for scale, unit in _SECONDS if seconds >= 0.9995 * scale), _SECONDS[-1])
    return f"{_three(seconds / scale)} {unit}"


def of_duration(seconds: float) -> str:
    """Return ``7.7 s``, ``1:23``, ``2:03:04``, or ``3 d 02:03``."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 24:
        return f"{hours // 24} d {hours % 24:02}:{minutes:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _three(number: float) -> str:
    decimals = 2 if number < 9.995 else 1 if number < 99.95 else 0
    return f"{number:.{decimals}f}"
