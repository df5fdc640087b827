"""Write a checkpoint as a SavedModel for serving, or all that has changed since another checkpoint; train nothing.

``launch export`` runs this module on the chief's host: ``python -m jobs.export JOB --train JSON --args JSON
--checkpoint PATH --out FOLDER``. A run by hand needs no TF_CONFIG. The output is one JSON object:

    {"inputs": {name: {"dtype": …, "shape": …}, …}, "outputs": {…}, "tables": {name: rows, …}, "version": …}

With ``--since PATH`` FOLDER exists, and gets the delta from the checkpoint at PATH. ``--since 0`` writes the whole
model as a delta.

On a failure, the last line on stderr is the cause, and the exit code is 1.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from cluster.job import load
from cluster.protocol.checkpoint_files import NO_VERSION
from cluster.protocol.outcome import Reporter
from cluster.serving.saved_model import export, export_delta
from cluster.task import Task, Train
from jobs.main import leave_the_code, make_parser, print_failure, read_mapping

_ALONE = Task("worker", 0, {"ps": ["localhost"], "worker": ["localhost"]})


def main() -> None:
    """Read argv and TF_CONFIG, write the SavedModel, and print its inputs, outputs and tables."""
    parser = make_parser("python -m jobs.export", __doc__ or "")
    parser.add_argument("--checkpoint", required=True, metavar="PATH", help="Checkpoint, such as …/model-800.")
    parser.add_argument(
        "--out", required=True, metavar="FOLDER", help="Folder of the SavedModel, which must not exist."
    )
    parser.add_argument("--since", metavar="PATH|0", help="Write the delta since this checkpoint; 0: the whole model.")
    options = parser.parse_args()
    checkpoint, folder = (os.path.abspath(os.path.expanduser(path)) for path in (options.checkpoint, options.out))
    leave_the_code(os.environ)
    try:
        settings = Train.from_dict(read_mapping("--train", options.train))
        task = Task.from_environment(os.environ) if os.environ.get("TF_CONFIG") else _ALONE
        task = replace(task, batch_size=settings.tower_batch_size)
        job = load(options.job, Path(__file__).parent)
        args = read_mapping("--args", options.args)
        if options.since is None:
            found = export(job, task, args, checkpoint, folder)
        else:
            since = None if options.since == NO_VERSION else os.path.abspath(os.path.expanduser(options.since))
            found = export_delta(job, task, args, checkpoint, since, folder)
    except Exception as error:
        print_failure(Reporter.from_environment(os.environ).failure(error))
        sys.exit(1)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
