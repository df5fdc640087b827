"""Checkpoints as TensorFlow writes them, and what is found of them."""

from pathlib import Path
from typing import List

from launch.agent import stored


def save(folder: Path, *steps: int) -> None:
    """A small checkpoint of each step."""
    folder.mkdir(parents=True, exist_ok=True)
    for step in steps:
        (folder / f"model-{step}.data-00000-of-00001").write_text(f"data {step}")
        (folder / f"model-{step}.index").write_text(f"index {step}")


def steps(folder: Path) -> List[int]:
    """Those of the complete checkpoints in a folder."""
    return [each.step for each in stored.checkpoints(folder)]
