"""What docs/jobs.md tells the author of a model is so."""

import re
import types
from pathlib import Path

import pytest
import yaml

from cluster.optimizers import from_args
from cluster.runtime.tf_compat import tf
from tests.support import ROOT
from tests.support.training.alone import train_alone

GUIDE = (ROOT / "docs" / "jobs.md").read_text()


def block(language: str) -> str:
    """The only fenced block of a language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    return str(text)


def test_the_whole_job_of_the_guide_learns(tmp_path: Path) -> None:
    job = types.ModuleType("guide")
    job.__file__ = str(tmp_path / "guide.py")
    exec(compile(block("python"), job.__file__, "exec"), job.__dict__)
    outcome = train_alone(job, tmp_path, {"layers": 2, "seed": 0}, steps=200, batch_size=32, towers=2)
    assert outcome.succeeded, outcome
    assert outcome.metrics["accuracy"] > 0.9


def test_the_keras_model_of_the_page_for_those_who_move_trains(tmp_path: Path) -> None:
    job = types.ModuleType("moved")
    job.__file__ = str(tmp_path / "moved.py")
    exec((ROOT / "docs" / "moving.md").read_text().split("```python\n")[1].split("```")[0], job.__dict__)
    assert train_alone(job, tmp_path, {"seed": 0}, steps=5, batch_size=8, towers=2).succeeded


@pytest.mark.parametrize("alternative", ["", "exponential", "cosine"])
def test_the_args_of_the_guide_make_an_optimizer(alternative: str) -> None:
    text = re.sub(rf"# (decay: {{kind: {alternative})", r"\1", block("yaml")) if alternative else block("yaml")
    args = yaml.safe_load(text)["args"]
    assert args["decay"]["kind"] == (alternative or "piecewise")
    with tf.Graph().as_default():
        assert isinstance(from_args(args), tf.train.MomentumOptimizer)


def test_every_job_is_in_the_guide() -> None:
    jobs = {path.stem for path in (ROOT / "jobs").glob("*.py") if "\ndef model(" in path.read_text()}
    assert jobs <= set(re.findall(r"^\| `(\w+)` \|", GUIDE.split("## The jobs")[1], re.MULTILINE))
