"""A result names the code that was measured."""

import subprocess
from pathlib import Path

from tests.benchmarks.speed import results


def test_a_commit_with_changed_files_has_a_mark(tmp_path: Path) -> None:
    assert results.commit(tmp_path) == ""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    (tmp_path / "file").write_text("1")
    for words in (["init", "-q"], ["add", "file"], ["commit", "-q", "-m", "1"]):
        subprocess.run([*git, *words], check=True)
    whole = results.commit(tmp_path)
    (tmp_path / "file").write_text("2")
    assert len(whole) == 8 and results.commit(tmp_path) == f"{whole}+"
