"""A status becomes metrics; the page lists every one of them, and the dashboard asks for no other."""

import json
import re
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from launch.monitoring.exporter import families
from launch.status.run import EffectiveTime, RunStatus
from tests.support import ROOT
from tests.support.launch.statuses import status, task

DOCS = ROOT / "docs"
PAGE = (DOCS / "metrics.md").read_text(encoding="utf-8")
DASHBOARD = json.loads((DOCS / "grafana-dashboard.json").read_text(encoding="utf-8"))
WORKER: Dict[str, Any] = {
    "step": 40, "step_time_ms": 25.0, "restarts": 2, "dropped_gradients": 3, "wait_ms": 5.0, "straggler": True,
    "bytes_in_per_second": 1e6, "bytes_out_per_second": 2e6, "gpu_percent": 75.0, "gpu_memory_bytes": 2**30,
}  # fmt: skip
FULL = status(
    task("ps:0@cpu01"), task("worker:0@gpu01", **WORKER), task("worker:1@gpu02", state="failed"), global_step=40,
    steps=100, steps_per_second=2.5, examples_per_second=160.0, loss=0.5, checkpoint_step=30, waiting_share=0.25,
    effective=EffectiveTime(0.8, 80.0, 100.0, 6.0, 9.0, 4.0, 1.0),
    evaluation={"step": 30, "accuracy": 0.9, "auc": None}, training_metrics={"auc": 0.75, "gauc": None},
)  # fmt: skip
Labels = Tuple[Tuple[str, str], ...]


def served(told: Optional[RunStatus], answered: bool = True) -> Dict[Tuple[str, Labels], float]:
    """{(metric, labels): value} as Prometheus reads it."""

    class Collector:
        def collect(self) -> Any:
            return families("r", "gpu01", answered, told)

    registry = CollectorRegistry()
    registry.register(Collector())  # type: ignore[arg-type]
    text = generate_latest(registry).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}


def value(samples: Mapping[Tuple[str, Labels], float], wanted: str, **labels: str) -> float:
    return samples[wanted, tuple(sorted({"name": "r", **labels}.items()))]


def of_worker(samples: Mapping[Tuple[str, Labels], float], metric: str) -> float:
    return value(samples, metric, task="worker:0", role="worker", host="gpu01")


def test_the_run_is_told_with_its_step_rate_loss_and_state() -> None:
    samples = served(FULL)
    assert value(samples, "launch_up", host="gpu01") == 1
    assert value(samples, "launch_run_info", run="r-1") == 1
    told = [value(samples, f"launch_{each}") for each in ("step", "last_step", "checkpoint_step", "loss")]
    assert told == [40, 100, 30, 0.5]
    assert value(samples, "launch_steps_per_second") == 2.5
    assert value(samples, "launch_examples_per_second") == 160
    assert value(samples, "launch_waiting_ratio") == 0.25
    assert value(samples, "launch_effective_ratio") == 0.8
    uses = {"kept": 80, "start": 6, "standing": 9, "rolled_back": 4, "saving": 1}
    assert {use: value(samples, "launch_time_seconds", use=use) for use in uses} == uses
    assert value(samples, "launch_run_state", state="running") == 1
    assert value(samples, "launch_run_state", state="failed") == 0
    assert value(samples, "launch_evaluation", metric="accuracy") == 0.9
    assert value(samples, "launch_training_metric", metric="auc") == 0.75
    undefined = {("launch_evaluation", "auc"), ("launch_training_metric", "gauc")}
    assert not undefined & {(name, dict(labels).get("metric")) for name, labels in samples}


def test_a_task_is_told_with_its_step_time_in_seconds_its_restarts_its_bytes_and_its_gpus() -> None:
    samples = served(FULL)
    assert of_worker(samples, "launch_task_up") == 1
    assert of_worker(samples, "launch_task_step") == 40
    assert of_worker(samples, "launch_task_step_seconds") == pytest.approx(0.025)
    assert of_worker(samples, "launch_task_wait_seconds") == pytest.approx(0.005)
    assert of_worker(samples, "launch_task_straggler") == 1
    assert of_worker(samples, "launch_task_restarts_total") == 2
    assert of_worker(samples, "launch_task_dropped_gradients_total") == 3
    assert of_worker(samples, "launch_task_received_bytes_per_second") == 1e6
    assert of_worker(samples, "launch_task_sent_bytes_per_second") == 2e6
    assert of_worker(samples, "launch_task_gpu_busy_ratio") == pytest.approx(0.75)
    assert of_worker(samples, "launch_task_gpu_memory_bytes") == 2**30
    assert value(samples, "launch_task_up", task="worker:1", role="worker", host="gpu02") == 0


def test_tasks_are_counted_by_role_and_state_also_where_there_are_none() -> None:
    samples = served(FULL)
    counts = {
        state: value(samples, "launch_tasks", role="worker", state=state) for state in ("running", "failed", "lost")
    }
    assert counts == {"running": 1, "failed": 1, "lost": 0}


def test_what_is_not_known_is_left_out_and_not_zero() -> None:
    names = {name for name, _ in served(status(task()))}
    unknown = {"launch_step", "launch_loss", "launch_evaluation", "launch_task_step_seconds"}
    assert not names & {*unknown, "launch_task_received_bytes_per_second"}
    assert {"launch_steps_per_second", "launch_task_restarts_total"} <= names


def test_of_a_host_that_does_not_answer_only_that_is_told() -> None:
    assert served(None, answered=False) == {("launch_up", (("host", "gpu01"), ("name", "r"))): 0.0}


def test_of_a_name_without_runs_only_the_host_is_told() -> None:
    assert served(None) == {("launch_up", (("host", "gpu01"), ("name", "r"))): 1.0}


# -- the documents


def rows() -> Dict[str, Tuple[Tuple[str, ...], str]]:
    """{metric: (labels, meaning)} of the page's table."""
    found = re.findall(r"^\| `(launch_\w+)` \| (.*?) \| (.*) \|$", PAGE, re.MULTILINE)
    return {metric: (tuple(re.findall(r"`(\w+)`", labels)), meaning) for metric, labels, meaning in found}


def test_the_page_lists_every_metric_with_its_labels_and_meaning() -> None:
    told: Dict[str, Tuple[Tuple[str, ...], str]] = {}
    for family in families("r", "gpu01", True, FULL):
        labels = [label for sample in family.samples for label in sample.labels]
        name = family.name + ("_total" if family.type == "counter" else "")
        told[name] = (tuple(dict.fromkeys(labels)), family.documentation)
    assert rows() == told


def queries() -> List[str]:
    """Every query of the dashboard, those of its variables too."""
    asked = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return asked + [each["definition"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]


def test_the_dashboard_and_the_alerts_ask_for_metrics_and_labels_that_are_served() -> None:
    asked = "\n".join([*queries(), *re.findall(r"^  expr: (.*)$", PAGE, re.MULTILINE)])
    assert len(queries()) > 15
    metrics = re.findall(r"launch_\w+", asked)
    assert set(metrics) <= set(rows())
    for metric, matchers in re.findall(r"(launch_\w+)\{(.*?)\}", asked):
        assert set(re.findall(r"(\w+)!?=", matchers)) <= set(rows()[metric][0])


def test_every_metric_of_the_page_is_on_the_dashboard_but_those_that_other_panels_say() -> None:
    shown = set(re.findall(r"launch_\w+", "\n".join(queries())))
    assert set(rows()) - shown == {"launch_task_up", "launch_task_step"}


def test_panels_do_not_cover_each_other_and_their_legends_name_labels_that_are_served() -> None:
    taken: Set[Tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells and place["x"] + place["w"] <= 24
        taken |= cells
        for target in panel["targets"]:
            metric = re.findall(r"launch_\w+", target["expr"])[0]
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= set(rows()[metric][0])
