"""What happens to a file: for tests of those who must notice."""

from pathlib import Path


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])
