"""The line of a Python file that caused an error: the line that raised it, or that made the operation at fault.

An error of a graph names operations, and an operation records the lines of the code that made it.
"""

import builtins
import contextlib
import difflib
import errno
import functools
import inspect
import linecache
import re
import traceback
from typing import Any, Dict, Iterator, List, Mapping, Optional

_OPTIMIZER = "/python/training/optimizer.py"  # TensorFlow's file of the optimizer
_LONGEST, _MOST = 100, 8  # characters of a line, and keys of a mapping, that an error quotes
_WRONG = re.compile(r"^name '(\w+)' is not defined|has no attribute '(\w+)'$|^'(\w+)'$")  # a name, attribute or key


def described_at(place: str, error: BaseException) -> str:
    """Return an error with its place, ``file:line``, and the text of that line."""
    return f"{place}: {_described(error)}{quote_line(place)}{_advice(error) or _meant(place, error)}"


def quote_line(place: str) -> str:
    """Return the text of the line at ``file:line`` as the end of a sentence; "" where the line does not exist."""
    path, _, line = place.rpartition(":")
    text = linecache.getline(path, int(line)).strip() if path and line.isdigit() else ""
    return f", in `{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}`" if text else ""


def place_of(path: str, error: BaseException) -> str:
    """Return the ``file:line`` of ``error`` in the file ``path``; only ``path`` if the line is not known.

    The line is that of the innermost frame in the file, or else of the code that made the operation at fault.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    lines = _lines_of_frames(path, error) or _lines_of_op(path, getattr(error, "op", None))
    return f"{path}:{lines[-1]}" if lines else path


def _lines_of_frames(path: str, error: Optional[BaseException]) -> List[Optional[int]]:
    """Return the lines of a file in which an error, or the error before it, was raised; the innermost last."""
    if error is None:
        return []
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines or _lines_of_frames(path, error.__context__)


def place_of_function(function: Any) -> Optional[str]:
    """Return the ``file:line`` at which the Python code of a function begins; None for any other callable."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else None


def is_of_optimizer(error: BaseException) -> bool:
    """Return whether the error was raised within a call of TensorFlow's optimizer."""
    return any(frame.filename.endswith(_OPTIMIZER) for frame in traceback.extract_tb(error.__traceback__))


def _lines_of_op(path: str, op: Any) -> List[Optional[int]]:
    """Return the lines of a file that made an operation, the innermost last.

    For a gradient's operation, the lines that made the differentiated operation follow.
    """
    made = [op, getattr(op, "_original_op", None)]
    return [frame[1] for each in made for frame in getattr(each, "traceback", None) or () if frame[0] == path]


def line_that_raised(path: str, error: Any) -> Optional[str]:
    """Return the ``file:line`` at which code of the file ``path`` raised ``error`` within a session, else None."""
    lines = re.findall(rf'File "{re.escape(path)}", line (\d+)', str(error.message))
    return f"{path}:{lines[-1]}" if lines else None


def line_that_made(path: str, error: Any, graph: Any, task: str = "") -> Optional[str]:
    """Return the ``file:line`` at which the file ``path`` created an operation that ``error`` names, else None.

    Args:
      error: an error of a session.
      task: only operations on this task's devices count; "" for operations of any task.
    """
    ops = [op for op in _ops_named_by(error, graph) if op.device.startswith(task)]
    lines = [line for op in ops for line in _lines_of_op(path, op)[-1:]]
    return f"{path}:{lines[0]}" if lines else None


def _ops_named_by(error: Any, graph: Any) -> Iterator[Any]:
    """Yield the operations that a session's ``error`` names.

    Some of the names belong to copies over the network; they end in ``_S`` or ``_G`` and a number.
    """
    for name in re.findall(r"\[\[(?:\{\{)?(?:node )?([^\s}\]]+)", str(error.message)):
        with contextlib.suppress(KeyError, ValueError):
            yield graph.get_operation_by_name(re.sub(r"_[SG]\d+$", "", name))


def _described(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}".rstrip(":. ")


def _advice(error: BaseException) -> str:
    """Return the next step after an error that authors often meet, as the end of a sentence; "" for any other error."""
    # numpy and pandas raise errors of their own without an error number.
    missing = isinstance(error, OSError) and (error.errno == errno.ENOENT or str(error).endswith("not found."))
    return "; put the file beside the job: each task works in a copy of the job's folder" if missing else ""


def _meant(place: str, error: BaseException) -> str:
    """Return the nearest to a name, attribute or key that does not exist, as the end of a sentence; "" for none."""
    path, _, line = place.rpartition(":")
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == path]
    found = _WRONG.search(str(error)) if isinstance(error, (NameError, AttributeError, KeyError)) and frames else None
    if found is None:
        return ""
    wrong = str(found.group(found.lastindex or 0))
    names: Dict[str, Any] = {**vars(builtins), **frames[-1].f_globals, **frames[-1].f_locals}
    known, otherwise = list(names), "; define it, or import it"
    if not isinstance(error, NameError):
        owner = re.search(rf"(\w+)(?:\.|\[[\"'])\b{wrong}\b", linecache.getline(path, int(line)))
        value = names.get(owner.group(1)) if owner else None
        keys = [str(key) for key in value] if isinstance(value, Mapping) else None
        known = dir(value) if keys is None else keys
        otherwise = "" if keys is None else f"; found the keys {', '.join(keys[:_MOST])}" if keys else "; found no key"
    near = difflib.get_close_matches(wrong, known, 1)
    return f"; did you mean '{near[0]}'?" if near else otherwise
