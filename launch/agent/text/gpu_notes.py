"""The notes that TensorFlow logs at its start on a machine without a GPU, a driver or CUDA's libraries.

They are no error: TensorFlow goes on with processors. Each process adds its own time, so that equal notes differ.
"""

import re
from typing import Optional

_LOGGED = re.compile(
    r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWE] \S*"
    r"(?:dso_loader|cudart_stub|cuda_driver|cuda_diagnostics|cuda_platform|gpu_device)\.cc:\d+\] (?P<text>.*)$"
)
_NOTE = re.compile(
    r"^(?:Could not load dynamic library '|Could not find cuda drivers|Ignore above cudart dlerror"
    r"|failed call to cuInit: |Cannot dlopen some GPU libraries"
    r"|no NVIDIA GPU device is present|kernel driver does not appear to be running)"
)


def gpu_note(line: str) -> Optional[str]:
    """Return such a line without its time and place, so that tasks write equal ones; None for any other line."""
    logged = _LOGGED.match(line)
    text = logged.group("text") if logged else ""
    return f"TensorFlow: {text.split('; dlerror:')[0]}" if _NOTE.match(text) else None
