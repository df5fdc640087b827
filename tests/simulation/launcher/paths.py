"""Paths to the files in memory of the host whose program or agent runs now."""

from pathlib import PurePosixPath
from typing import Any, Callable, Iterator, List, Type


def paths(disk: Callable[[], Any]) -> Type[PurePosixPath]:
    """Return a kind of path with the methods of ``pathlib.Path`` that verbs and agents ask for."""

    class SimulatedPath(PurePosixPath):
        """A path to a file in memory; a folder is there with a file in it, or where it was made."""

        def _below(self) -> List[str]:
            inside = f"{self}/"
            return [each for each in disk().paths if each.startswith(inside)]

        def is_dir(self) -> bool:
            return bool(self._below())

        def exists(self) -> bool:
            return bool(disk().lexists(str(self))) or self.is_dir()

        def read_text(self) -> str:
            text: str = disk().read(str(self))
            return text

        def unlink(self) -> None:
            disk().unlink(str(self))

        def mkdir(self, mode: int = 0, parents: bool = False, exist_ok: bool = False) -> None:
            if self.is_dir() and not exist_ok:
                raise FileExistsError(str(self))
            disk().write(f"{self}/.", "", durable=True)

        def iterdir(self) -> "Iterator[Any]":
            depth = len(self.parts)
            names = {PurePosixPath(each).parts[depth] for each in self._below() if not each.endswith("/.")}
            return iter([self / name for name in sorted(names)])

        def glob(self, pattern: str) -> "Iterator[Any]":
            return iter([type(self)(each) for each in disk().glob(f"{self}/{pattern}")])

    return SimulatedPath
