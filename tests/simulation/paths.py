"""Paths whose files are on a disk in memory."""

from pathlib import Path
from typing import Any, Type

_OfHere: Any = type(Path())


def paths_on(disk: Any) -> Type[Path]:
    """The class of the paths of a disk, which has what agents ask of theirs."""

    class Here(_OfHere):  # type: ignore[misc]
        """A path of this disk."""

        def read_text(self, encoding: Any = None, errors: Any = None, newline: Any = None) -> str:
            return disk.read(str(self)).decode()  # type: ignore[no-any-return]

        def write_text(self, data: str, *more: Any, **others: Any) -> int:
            with disk.handles.open(str(self), "w") as file:
                return file.write(data)  # type: ignore[no-any-return]

        def exists(self, **more: Any) -> bool:
            return disk.lexists(str(self))  # type: ignore[no-any-return]

        def unlink(self, missing_ok: bool = False) -> None:
            disk.unlink(str(self))

        def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
            """Do nothing: folders are there."""

    return Here
