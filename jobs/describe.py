"""Print the variables that a job creates and their placement; train nothing.

``launch plan`` runs this module in the job's own runtime: ``python -m jobs.describe JOB --train JSON --args JSON
--share NUMBER --folder PATH`` with the chief's TF_CONFIG. The output is one JSON object:

    {"ps": [{"bytes": bytes of all values on this ps, "pulled": bytes that a worker reads from it in a step,
             "variables": [names]}, …],
     "tables": [{"name": …, "rows": …, "rows_per_step": rows that a worker looks up, "bytes": …,
                 "bytes_per_step": …}, …],
     "fewest": {"ps": the smallest sufficient number of ps,
                "pulled": bytes that a worker reads in a step from the fullest ps of so many},
     "overlapped": whether a step pushes and pulls at the same time}

A number of ps suffices if the fullest ps has at most the share ``--share`` of all bytes that a worker reads.

On a failure, the last line on stderr is the cause, as in a task's report. The exit code is ``GRAPH_MISTAKE``
if the cause is in the job or, with ``--warm-start``, in the checkpoint of ``train.warm_start``. The exit code is 1 if
this machine lacks a file, a module or memory: another machine may be able to build the graph.
"""

import json
import math
import os
import re
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set

from cluster.checkpoints.warm_start import ModelNames
from cluster.errors import MissingDataError
from cluster.job import load
from cluster.model.device_pool import as_client, own_pool
from cluster.protocol.checkpoint_files import list_checkpoints
from cluster.protocol.outcome import GRAPH_MISTAKE, Reporter
from cluster.runtime.tf_compat import tf
from cluster.steps.replica import Replica
from cluster.task import Task, Train
from cluster.training.graph_builder import Builder
from cluster.variables.layout import Layout, whole
from cluster.variables.masters import plain_name
from cluster.variables.placement import assign, variable_bytes
from cluster.variables.profile import VariableProfile
from jobs.main import checkpoint_dir, leave_the_code, make_parser, print_failure, read_mapping

_PS = re.compile(r"/job:ps/(?:replica:\d+/)?task:(\d+)")
_HARDLY_MORE = 1.02  # the balance that slices allow


def describe(
    job_name: str, task: Task, settings: Train, args: Dict[str, Any], share: float, warm_starts: bool = False
) -> Dict[str, Any]:
    """Return the values that ``python -m jobs.describe`` prints.

    Args:
      warm_starts: whether the run begins on this machine with ``train.warm_start``, if the run has that key.

    Raises:
      JobError: the job's code fails.
      TrainingError: the checkpoint for the warm start is missing or does not fit.
    """
    job = load(job_name, Path(__file__).parent).with_args(args)
    pool = own_pool(task, settings)
    replica = Builder(job, as_client(task, pool), settings, args, pool, estimate=True).build()
    if warm_starts and settings.warm_start:
        ModelNames(settings.warm_start, replica.of_model, replica.warm_rows()).source()
    trained = {variable.op.name for variable in replica.graph.get_collection("trainable_variables")}
    profiles = replica.layout.profiles
    embeddings = [table for each in replica.extensions for table in each.described()]
    of_embeddings: int = sum(table["bytes_per_step"] for table in embeddings)

    def fullest(num_ps: int) -> int:
        return max(pulled(profiles, trained, num_ps, settings.wire)) + of_embeddings // num_ps

    few = fewest(fullest, share)
    return {
        "ps": _list_held(replica, trained, len(task.cluster["ps"]), settings.wire, embeddings),
        "tables": [*[_table(name, each) for name, each in profiles.items() if each.lookups is not None], *embeddings],
        "fewest": {"ps": few, "pulled": fullest(few)},
        "overlapped": replica.stepper.overlaps,
    }


def _list_held(
    replica: Replica, trained: Set[str], num_ps: int, wire: str, embeddings: Sequence[Mapping[str, Any]]
) -> List[Dict[str, Any]]:
    servers: List[Dict[str, Any]] = [{"bytes": 0, "pulled": 0, "variables": []} for _ in range(num_ps)]
    for variable in replica.variables:
        server, name = servers[_server(variable)], plain_name(variable)
        server["bytes"] += variable_bytes(variable.op)
        server["pulled"] += replica.layout.read_bytes(name, wire) if whole(name) in trained else 0
        server["variables"].append(name)
    for table in embeddings:  # their ids are distributed evenly
        for server in servers:
            server["pulled"] += table["bytes_per_step"] // num_ps
            server["variables"].append(table["name"])
    return servers


def _server(variable: Any) -> int:
    found = _PS.search(variable.device)
    return int(found.group(1)) if found else 0


def _table(name: str, profile: VariableProfile) -> Dict[str, Any]:
    rows, taken = profile.shape[0], profile.lookups or 0
    read = min(profile.bytes, taken * profile.bytes // rows)
    return {"name": name, "rows": rows, "rows_per_step": taken, "bytes": profile.bytes, "bytes_per_step": read}


def pulled(profiles: Mapping[str, VariableProfile], trained: Set[str], num_ps: int, wire: str = "float32") -> List[int]:
    """Return the bytes that a worker reads in a step from each of ``num_ps`` ps, with the placement of training.

    Args:
      profiles: the profiles of the model's variables, by name.
      trained: the names of the trained variables.
      wire: the number format in which values are sent.
    """
    layout = Layout(profiles, num_ps)
    read = [0] * num_ps
    for name, server in assign(layout.sizes, num_ps).items():
        read[server] += layout.read_bytes(name, wire) if whole(name) in trained else 0
    return read


def fewest(fullest: Callable[[int], int], share: float) -> int:
    """Return the smallest sufficient number of ps.

    A number suffices if the fullest ps has at most ``share`` of all bytes, or hardly more bytes than with many more ps.
    ``fullest`` takes a number of ps, and returns the bytes of the fullest ps. These bytes fall as the number grows,
    except for small deviations from cutting slices. So the function uses a binary search.
    """
    few, many = 1, 2 * math.ceil(1 / share)
    enough = _HARDLY_MORE * max(fullest(many), share * fullest(1))
    while few < many:
        middle = (few + many) // 2
        few, many = (few, middle) if fullest(middle) <= enough else (middle + 1, many)
    return few


def is_of_machine(error: Optional[BaseException]) -> bool:
    """Return whether this machine caused ``error``: it lacks a file, a module, memory, or a server that answers."""
    while error is not None:
        if isinstance(error, (OSError, ImportError, MemoryError, MissingDataError, tf.errors.OpError)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _has_checkpoint(settings: Train) -> bool:
    """Return whether the run has its own checkpoint on this machine, from which it begins."""
    folder = checkpoint_dir(settings, os.environ)
    return folder is not None and bool(list_checkpoints(Path(folder)))


def main() -> None:
    """Read argv and TF_CONFIG, and print the description."""
    parser = make_parser("python -m jobs.describe", __doc__ or "")
    parser.add_argument("--share", type=float, default=1.0, help="Largest share of all bytes, up to 1, on one ps.")
    parser.add_argument("--warm-start", action="store_true", help="Check train.warm_start, on the chief's host.")
    parser.add_argument("--folder", help="Working folder of the job's tasks; by default, the current folder.")
    options = parser.parse_args()
    if options.folder:
        os.chdir(options.folder)
    leave_the_code(os.environ)
    settings = Train.from_dict(read_mapping("--train", options.train))
    args = read_mapping("--args", options.args)
    try:
        warm_starts = options.warm_start and not _has_checkpoint(settings)
        found = describe(options.job, Task.from_environment(os.environ), settings, args, options.share, warm_starts)
    except Exception as error:
        print_failure(Reporter.from_environment(os.environ).failure(error))
        sys.exit(1 if is_of_machine(error) else GRAPH_MISTAKE)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
