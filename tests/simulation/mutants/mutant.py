"""One mutant: modules of the product with another text."""

from pathlib import Path
from typing import Dict, NamedTuple, Optional, Set, Tuple

from tests.simulation.faults import Fault
from tests.simulation.mutants.reached import statements

ROOT = Path(__file__).resolve().parents[3]


class Edit(NamedTuple):
    """A text in a module, and the text in its place. It occurs once, or at this offset."""

    path: str
    old: str
    new: str
    offset: Optional[int] = None

    def place(self, text: str) -> int:
        """Return where in a module's text it begins.

        Raises:
          ValueError: it is not there, or not once.
        """
        if self.offset is not None and text.startswith(self.old, self.offset):
            return self.offset
        if self.offset is not None or text.count(self.old) != 1:
            raise ValueError(f"{self.path}: expected once, found {text.count(self.old)}: {self.old}")
        return text.index(self.old)


class Mutant(NamedTuple):
    """A mistake in the product, by ``name``; ``what`` has it in words.

    ``known`` is a history that finds it, by the seed of its run and its faults; None where none is known.
    """

    name: str
    what: str
    edits: Tuple[Edit, ...]
    known: Optional[Tuple[int, Tuple[Fault, ...]]] = None

    def sources(self) -> Dict[str, str]:
        """Return the texts of the modules that differ, by the modules' names.

        Raises:
          ValueError: an old text does not occur once.
        """
        texts: Dict[str, str] = {}
        for edit in self.edits:
            text = texts.get(edit.path) or (ROOT / edit.path).read_text()
            at = edit.place(text)
            texts[edit.path] = text[:at] + edit.new + text[at + len(edit.old) :]
        return {module(path): text for path, text in texts.items()}

    def statements(self) -> Optional[Dict[str, Set[int]]]:
        """Return the lines at which the statements begin that differ, by path; None where they are of no function."""
        found: Dict[str, Set[int]] = {}
        for edit in self.edits:
            text = (ROOT / edit.path).read_text()
            first = 1 + text.count("\n", 0, edit.place(text))
            at = statements(text, first, first + edit.old.rstrip("\n").count("\n"))
            if at is None:
                return None
            found.setdefault(edit.path, set()).update(at)
        return found


def module(path: str) -> str:
    """Return the name of the module at a path."""
    return path[: -len(".py")].replace("/", ".")
