"""The words of an error that name the cause, among the pages that TensorFlow writes around them.

TensorFlow 1.15 puts the operation, ``[[node …]]``, and the stack of its creation below the reason; 2.x also puts a
stack above the reason. So the reason is the last line above the operation.

A step may fail on several tasks. Then one error reports all failures, with the type of the first. An exception in a
job's Python, for instance, is "Unknown". A ps that waits for a tensor of this step asks again after an unknown error,
and is refused with "Aborted". Whichever failure is first, the one that is not a lost connection is the cause.
"""

import contextlib
import re
from typing import Iterator, Optional

from cluster.runtime.tf_compat import tf

# A task's error among others, in 1.15 ("Aborted: From …") and in 2.x ("  (0) ABORTED: From …").
_FAILED = re.compile(r"^(?: *\(\d+\) )?([A-Z][A-Za-z_ ]+): From /job:", re.MULTILINE)
_HEAD = re.compile(r"Graph execution error:|From /job:\S+:")  # lines of their own, the first of them in 2.x
_FOLLOWS = ("ABORTED", "CANCELLED", "UNAVAILABLE")  # a task has these errors after the failure of another task

# TensorFlow 2.x draws a request's id from 32 bits, and a server keeps the ids of 100,000 requests. So up to one step in
# 43,000 fails, and its worker joins again. The message goes on with a page of the request's tensors.
_TWICE = "request was received twice"


@contextlib.contextmanager
def raise_only_the_cause() -> Iterator[None]:
    """Replace an error of several tasks by its cause.

    Inside this context, the cause is raised in its place, with the cause's own type.
    """
    try:
        yield
    except tf.errors.OpError as error:
        found = cause_among(error)
        if found is None:
            raise
        raise found from error


def cause_among(error: BaseException) -> Optional[BaseException]:
    """Return the first failure in ``error`` that does not follow from another task's failure.

    The result is None if no such failure exists, or if ``error`` does not report several tasks.
    """
    message = getattr(error, "message", None) or str(error)
    starts = list(_FAILED.finditer(message))
    if len(starts) < 2:
        return None
    for start, end in zip(starts, [*(each.start() for each in starts[1:]), None]):
        code = start.group(1).upper().replace(" ", "_")
        if code not in _FOLLOWS and hasattr(tf.errors, code):
            kind = tf.errors.exception_type_from_error_code(getattr(tf.errors, code))
            text = message[start.end(1) + len(": ") : end]
            return kind(None, None, text.strip().strip("=").strip())  # type: ignore[no-any-return]
    return None


def line_of(error: BaseException) -> str:
    """Return the line of ``error`` that has the cause; where it names no operation, the first line below its heads."""
    message = (getattr(error, "message", None) or str(error)).strip()
    above, operation, _ = message.partition("[[")
    lines = [line for line in map(str.strip, above.split("\n")) if line and not _HEAD.fullmatch(line)] or [message]
    return lines[-1] if operation else lines[0]


def reason_of(error: BaseException) -> str:
    """Return the line of ``error`` that has the cause, without a leading file name, which differs between saves."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    line = line_of(error)
    if _TWICE in line:
        return "a server took a request for one that it had received before"
    parts = [part for part in line.split("; ") if part]
    return parts[-1] if parts else type(error).__name__
