"""The way from a raw log to a served model, block by block."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

pytestmark = pytest.mark.not_fast  # trains

PAGE = (ROOT / "docs" / "embeddings.md").read_text().partition("\n## From a raw log to a served model\n")[2]
PATIENCE_S = 400


def run(home: Path, *argv: str) -> str:
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    ran = subprocess.run(
        [sys.executable, *argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S,
        cwd=str(home), env=env,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def test_every_block_works_and_the_served_model_predicts(tmp_path: Path) -> None:
    log, predict = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (settings,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "clicks.yaml").write_text(f"{settings}workdir: {tmp_path}/work\n")
    run(tmp_path, "-c", log)
    trained = run(tmp_path, "-m", "launch", "up", "clicks.yaml", "--local")
    assert "succeeded" in trained and float(re.findall(r"held-out data: .* auc ([\d.]+)", trained)[0]) > 0.72, trained
    run(tmp_path, "-m", "launch", "export", "clicks.yaml", "--local", f"{tmp_path}/served")
    click = float(run(tmp_path, "-W", "ignore", "-c", predict).strip("[]\n").split("[")[-1])
    assert 0 < click < 1
