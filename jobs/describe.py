"""Prints which variables a job makes and where they would be placed; trains nothing.

``launch plan`` runs it in the job's own runtime: ``python -m jobs.describe JOB --train JSON --args JSON``
with TF_CONFIG as the chief's. It prints one JSON object:

    {"ps": [{"bytes": of all values it holds, "pulled": bytes of those that a step reads, "variables": [names]}, …]}
"""

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, List

from cluster.crew import as_client, own_devices
from cluster.job import load
from cluster.placement import variable_bytes
from cluster.replica import Builder
from cluster.task import Task, Train
from jobs.main import make_parser, read_mapping

_PS = re.compile(r"/job:ps/(?:replica:\d+/)?task:(\d+)")


def describe(job_name: str, task: Task, settings: Train, args: Dict[str, Any]) -> Dict[str, Any]:
    """What ``python -m jobs.describe`` prints.

    Raises:
      JobError: the job's code fails.
    """
    job = load(job_name, Path(__file__).parent).with_args(args)
    crew = own_devices(task, settings)
    replica = Builder(job, as_client(task, crew), settings, args, crew).build()
    trained = set(replica.graph.get_collection("trainable_variables"))
    servers: List[Dict[str, Any]] = [{"bytes": 0, "pulled": 0, "variables": []} for _ in task.cluster["ps"]]
    for variable in replica.variables:
        server, size = servers[_server(variable)], variable_bytes(variable.op)
        server["bytes"] += size
        server["pulled"] += replica.shared.read_bytes(variable.op.name) if variable in trained else 0
        server["variables"].append(variable.op.name)
    return {"ps": servers}


def _server(variable: Any) -> int:
    found = _PS.search(variable.device)
    return int(found.group(1)) if found else 0


def main() -> None:
    """Reads argv and TF_CONFIG, prints the description."""
    options = make_parser("python -m jobs.describe", __doc__ or "").parse_args()
    settings = Train.from_dict(read_mapping("--train", options.train))
    args = read_mapping("--args", options.args)
    print(json.dumps(describe(options.job, Task.from_environment(os.environ), settings, args)))


if __name__ == "__main__":
    main()
