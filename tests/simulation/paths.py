"""Paths whose files are on a disk in memory."""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Iterator, Type

_OfHere: Any = type(Path())


def paths_on(disk: Any) -> Type[Path]:
    """The class of the paths of a disk, which has what agents and verbs ask of theirs."""

    class Here(_OfHere):  # type: ignore[misc]
        """A path of this disk."""

        def read_text(self, encoding: Any = None, errors: Any = None, newline: Any = None) -> str:
            return disk.read(str(self)).decode()  # type: ignore[no-any-return]

        def write_text(self, data: str, *more: Any, **others: Any) -> int:
            with disk.handles.open(str(self), "w") as file:
                return file.write(data)  # type: ignore[no-any-return]

        def exists(self, **more: Any) -> bool:
            return disk.lexists(str(self)) or disk.is_folder(str(self))  # type: ignore[no-any-return]

        def is_dir(self, **more: Any) -> bool:
            return disk.is_folder(str(self))  # type: ignore[no-any-return]

        def unlink(self, missing_ok: bool = False) -> None:
            disk.unlink(str(self))

        def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
            if not self.is_dir():
                disk.make_folder(str(self))
            elif not exist_ok:
                raise FileExistsError(str(self))

        def iterdir(self) -> "Iterator[Any]":
            inside, depth = f"{self}/", len(self.parts)
            below = [each for each in (*disk.names(), *disk.folders) if each.startswith(inside)]
            return iter([self / name for name in sorted({Path(each).parts[depth] for each in below})])

        def glob(self, pattern: str, **more: Any) -> "Iterator[Any]":
            return iter([type(self)(each) for each in disk.names() if fnmatchcase(each, f"{self}/{pattern}")])

    return Here
