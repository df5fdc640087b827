"""The job's ``args``, which record the keys that its functions read: a misspelt key is read by none."""

import difflib
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Set

from cluster.job import Job


class ReadArgs(Dict[str, Any]):
    """A dictionary with the same content as ``given``.

    Who takes all of it at once, as ``{**args}``, a loop and ``json.dumps`` do, has read every key.

    ``asked``: the keys that were read, and those that were looked for in vain.
    """

    def __init__(self, given: Mapping[str, Any]):
        super().__init__(given)
        self._given = list(given)
        self.asked: Set[str] = set()

    def unread(self) -> List[str]:
        """Return the keys that were not read yet."""
        return [name for name in self._given if name not in self.asked]

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value, and record that it was read."""
        self.asked.add(name)
        return super().get(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        """Remove the key, and record that it was read."""
        self.asked.add(name)
        return super().pop(name, *default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Return the value, which is the default from now on where there was none."""
        self.asked.add(name)
        return super().setdefault(name, default)

    def __iter__(self) -> Iterator[str]:
        self._ask_for_all()
        return super().__iter__()

    def keys(self) -> Any:
        """Return all keys, and record that they were read."""
        self._ask_for_all()
        return super().keys()

    def values(self) -> Any:
        """Return all values, and record that they were read."""
        self._ask_for_all()
        return super().values()

    def items(self) -> Any:
        """Return all pairs, and record that they were read."""
        self._ask_for_all()
        return super().items()

    def copy(self) -> Dict[str, Any]:
        """Return a plain dictionary, and record that all keys were read."""
        return dict(self)

    def _ask_for_all(self) -> None:
        self.asked.update(super().__iter__())


class UnreadArgs:
    """The warnings about ``args`` that no function of a job has read."""

    def __init__(self, args: ReadArgs, job: Job):
        self._args, self._path = args, Path(job.path)
        self._known: Dict[str, bool] = {}

    def warnings(self) -> List[str]:
        """Return a sentence for each key that no function has read, and that does not stand in the job's file.

        A function may read a key later: ``predict`` when the model is exported, or a generator of examples.
        """
        return [self._warning(name) for name in self._args.unread() if not self._is_in_file(name)]

    def _warning(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._args.asked, 1)
        step = f"did you mean args.{near[0]}?" if near else "correct its name, or take it out"
        return f"args.{name}: expected a key that the job reads, found one that no function has read; {step}"

    def _is_in_file(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = re.search(rf"""["']{re.escape(name)}["']""", self._text()) is not None
        return self._known[name]

    def _text(self) -> str:
        with suppress(OSError, UnicodeDecodeError):
            return self._path.read_text(encoding="utf-8")
        return ""
