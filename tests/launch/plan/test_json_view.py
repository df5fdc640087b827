"""`launch plan --json`: every task as it would run, written one at a time."""

import json
from pathlib import Path
from typing import List

from cluster.protocol.typed_json import to_values
from launch.plan.outlook import Outlook, PlannedTask, shown_tasks, write_json
from tests.launch.plan.plans import RUN, plan_of, read

TEXT = """
job: digits
workdir: /w
secrets: [KEY]
cluster: {ps: [cpu01], worker: [{host: "gpu[01-02]", port: 2300, gpus: [0, 1]}]}
"""


def test_what_is_shown_is_what_would_run_with_paths_in_place_and_secrets_hidden(tmp_path: Path) -> None:
    (task,) = shown_tasks(plan_of(read(tmp_path, TEXT)), {"worker:1"})
    assert task.argv[3] == f"/w/runs/{RUN}/worker.1/work/digits.py"
    assert task.log == f"/w/runs/{RUN}/worker.1/attempt_0.log"
    assert task.env["KEY"] == "(secret)"
    assert json.loads(task.env["TF_CONFIG"])["task"] == {"type": "worker", "index": 1}
    assert set(to_values(task)) == {"role", "index", "host", "address", "gpus", "argv", "env", "limits", "log", "spare"}


def test_what_is_written_is_one_json_object(tmp_path: Path) -> None:
    tasks = list(shown_tasks(plan_of(read(tmp_path, TEXT)), {"ps:0", "worker:0"}))
    written: List[str] = []
    outlook = Outlook("r", "gpu01", None, remarks=["why"])
    write_json(outlook, tasks, written.append)
    assert json.loads("".join(written)) == {**to_values(outlook), "tasks": list(map(to_values, tasks))}


def test_a_task_is_made_when_it_is_written_since_all_of_them_may_not_fit_into_memory(tmp_path: Path) -> None:
    alive: List[int] = []

    class Counted(PlannedTask):
        def __init__(self, task: PlannedTask) -> None:
            super().__init__(**vars(task))
            alive.append(1)

        def __del__(self) -> None:
            alive.pop()

    most: List[int] = []
    shown = shown_tasks(plan_of(read(tmp_path, TEXT)), {"ps:0", "worker:0", "worker:1"})
    write_json(Outlook("r", "gpu01", None), (Counted(task) for task in shown), lambda text: most.append(len(alive)))
    assert max(most) <= 2
