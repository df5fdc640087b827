"""The words of an error that say why, of the pages that TensorFlow writes around them.

TensorFlow 1.15 puts the operation, ``[[node …]]``, and the stack that made it below the reason; 2.x puts a
stack above it too. So the reason is the last line above the operation.
"""


def line_of(error: BaseException) -> str:
    """The line that says why; of an error that names no operation the first."""
    told = (getattr(error, "message", None) or str(error)).strip()
    above, operation, _ = told.partition("[[")
    lines = [line.strip() for line in above.split("\n") if line.strip()] or [told]
    return lines[-1] if operation else lines[0]


def reason_of(error: BaseException) -> str:
    """The line that says why, without the name of a file before it, which differs from save to save."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    told = [part for part in line_of(error).split("; ") if part]
    return told[-1] if told else type(error).__name__
