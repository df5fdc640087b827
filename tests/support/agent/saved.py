"""Checkpoints as TensorFlow writes them, and what is found of them."""

from pathlib import Path
from typing import List

from launch.agent.checkpoints import stored


def save(folder: Path, *steps: int) -> None:
    """A small checkpoint of each step."""
    for step in steps:
        save_in_pieces(folder, step, 1)


def save_in_pieces(folder: Path, step: int, number: int) -> None:
    """A small checkpoint of so many data files."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(number):
        text = f"data {step}" if number == 1 else f"data {step}, {part} of {number}"
        (folder / f"model-{step}.data-{part:05}-of-{number:05}").write_text(text)
    (folder / f"model-{step}.index").write_text(f"index {step}")


def steps(folder: Path) -> List[int]:
    """Those of the complete checkpoints in a folder."""
    return [each.step for each in stored.checkpoints(folder)]
