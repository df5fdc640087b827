"""The notebook of the documentation, executed from its first cell to its last."""

import shutil
from pathlib import Path
from typing import Any, Dict, List

import pytest

from tests.support import ROOT
from tests.support.waiting import PATIENCE_S

REASON = "needs nbclient: the test extras have it"
nbformat = pytest.importorskip("nbformat", reason=REASON)
nbclient = pytest.importorskip("nbclient", reason=REASON)
EXAMPLES = ROOT / "docs" / "examples" / "python"


def shown(cell: Dict[str, Any]) -> str:
    """The outputs of a cell, as text."""
    texts: List[str] = []
    for output in cell["outputs"]:
        data = output.get("data", {})
        texts.append(output.get("text", "") + data.get("text/html", data.get("text/plain", "")))
    return "".join(texts)


def test_the_notebook_of_the_documentation_runs_from_its_first_cell_to_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "example"
    shutil.copytree(str(EXAMPLES), str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    notebook = nbformat.read(str(folder / "run.ipynb"), 4)
    client = nbclient.NotebookClient(notebook, timeout=int(PATIENCE_S), resources={"metadata": {"path": str(folder)}})
    client.execute()
    began, waited, logged, ended = (shown(cell) for cell in notebook.cells if cell.cell_type == "code")
    assert "line-" in began and "1 " in began
    assert "succeeded" in waited and "step 20" in waited and waited.endswith(tuple("0123456789"))
    assert "worker:0@localhost slope 2.42" in logged and "no process, port" in ended
