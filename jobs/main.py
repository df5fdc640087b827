"""The entry point of every task process, which becomes the task that TF_CONFIG describes.

The launcher starts the process on the hosts; a start by hand needs only TF_CONFIG.
"""

import argparse
import gc
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional

from cluster.errors import TaskError
from cluster.protocol.outcome import WORK, Outcome, Progress, Reporter
from cluster.protocol.standby import Standby
from cluster.protocol.verifiable import unverifiable
from cluster.runtime.process import outlive_full_disk
from cluster.task import UNFIT_FOR_STOCK, Best, Task, Train

_EXAMPLE = """\
example, a whole run on this machine in one shell:
  CLUSTER='{"ps": ["localhost:2222"], "worker": ["localhost:2223", "localhost:2224"]}'
  task() { TF_CONFIG="{\\"cluster\\": $CLUSTER, \\"task\\": {\\"type\\": \\"$1\\", \\"index\\": $2}}" \\
           python -m jobs.main digits --train '{"steps": 300, "batch_size": 32, "towers": 2}'; }
  task ps 0 & task worker 1 & task worker 0

The run ends by itself. With LAUNCH_TASK_DIR set, progress.json and outcome.json are
written into that folder, and checkpoints into the folder ../checkpoint next to it.
"""


def main(argv: Optional[List[str]] = None) -> int:
    """Run one task; return 0 if it succeeded, else 1."""
    # During TensorFlow's waits no Python signal handler runs, so a signal must end the process at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    options = make_parser("python -m jobs.main", __doc__ or "", _EXAMPLE).parse_args(argv)
    reporter = Reporter.from_environment(os.environ)
    standby = Standby.from_environment(os.environ, reporter)
    leave_the_code(os.environ)
    try:
        outcome = _run(options, reporter, standby)
    except Exception as error:
        if standby.waits:  # only the training process reports an outcome; the next process of this task will fail too
            traceback.print_exc()
            return 1
        outcome = reporter.failure(error)
    if not outcome.succeeded:
        print_failure(outcome)
    return 0 if outcome.succeeded else 1


def print_failure(outcome: Outcome) -> None:
    """Print the reason for a task's failure on stderr; the last line is the cause."""
    print(f"{outcome.traceback}\n{outcome.cause}", file=sys.stderr)


def leave_the_code(environ: Mapping[str, str]) -> None:
    """Change into the folder that the launcher has created for this task, if any.

    Files that a job writes into this folder cannot collide with the files of another task.
    """
    folder = environ.get("LAUNCH_TASK_DIR")
    if folder and os.path.isdir(os.path.join(folder, WORK)):
        os.chdir(os.path.join(folder, WORK))


def make_parser(program: str, description: str, example: str = "") -> argparse.ArgumentParser:
    """Return a parser for a command line that names a job and its settings."""
    parser = argparse.ArgumentParser(
        program, description=description, epilog=example, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("job", help="Job: NAME for jobs/NAME.py, a dotted module name, or a path to a .py file.")
    parser.add_argument("--train", default="{}", metavar="JSON", help="Section train of a hosts file.")
    parser.add_argument("--args", default="{}", metavar="JSON", help="Arguments of the job's functions.")
    return parser


def _run(options: argparse.Namespace, reporter: Reporter, standby: Standby) -> Outcome:
    task = Task.from_environment(os.environ)
    settings = Train.from_dict(read_mapping("--train", options.train))
    args = read_mapping("--args", options.args)
    _refuse_impossible(task, settings)
    reporter.heartbeat.note("loads TensorFlow")
    if task.role == "ps":
        return _serve(task, settings, reporter, standby)
    if task.role == "worker" and settings.replication == "in-graph" and not task.is_chief:
        from cluster.model.device_pool import count_devices

        return _serve(task, settings, reporter, standby, count_devices(settings))
    # Imported here, so that -h and the errors of a wrong TF_CONFIG do not wait for TensorFlow.
    from cluster.job import load
    from cluster.training.trainer import train

    gc.freeze()  # TensorFlow's objects stay: each collection would look at them for 0.08 s
    job = load(options.job, Path(__file__).parent)
    if task.role == "evaluator":
        return _evaluate(job, task, settings, args, reporter, standby)
    return train(
        job=job,
        task=task,
        settings=settings,
        args=args,
        reporter=reporter,
        checkpoint_dir=checkpoint_dir(settings, os.environ),
        standby=standby,
    )


def _serve(task: Task, settings: Train, reporter: Reporter, standby: Standby, devices: int = 1) -> Outcome:
    if task.role == "ps":
        # TensorFlow 2.x has an allocator for layers that bounds the size of tables; a ps has no layers.
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    from cluster.runtime import process, server

    gc.freeze()
    standby.wait()
    if task.role == "ps":
        process.trim_memory_every(process.TRIM_S)
    serving = server.start(task, devices, server.threads_of(settings))
    reporter.progress(Progress(0))  # without steps of its own: reports that it serves
    reporter.heartbeat.begin_phase("serving")
    server.wait_until_done(task, serving)
    outcome = Outcome(True)
    reporter.outcome(outcome)
    return outcome


def _evaluate(
    job: Any, task: Task, settings: Train, args: Dict[str, Any], reporter: Reporter, standby: Standby
) -> Outcome:
    from cluster.serving.evaluator import follow

    standby.wait()
    outcome = follow(job, task, settings, args, reporter)
    reporter.outcome(outcome)
    return outcome


def read_mapping(flag: str, text: str) -> Dict[str, Any]:
    """Return the JSON object in ``text``, the value of ``flag``.

    Raises:
      TaskError: the text is not a JSON object.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise TaskError(f"{flag}: expected a JSON object, found {text!r} ({error})") from error
    if not isinstance(value, dict):
        raise TaskError(f"{flag}: expected a JSON object, found {text!r}")
    return value


def _refuse_impossible(task: Task, settings: Train) -> None:
    """Refuse settings that the launcher refuses, for a task that was started by hand."""
    for problem in _impossible(task, settings):
        raise TaskError(problem)


def _impossible(task: Task, settings: Train) -> Iterator[str]:
    if settings.replication == "in-graph" and (settings.mode != "sync" or settings.backup_workers):
        yield "train.replication: in-graph needs mode sync and no backup_workers, found others; leave both keys out"
    best = settings.best
    if (best.max and best.min) or (best != Best() and not best.metric):
        yield "train.best: expected either max or min, found both or neither; set max: auc to keep the largest auc"
    if best.patience is not None and (settings.backup_workers or settings.sync == "stock"):
        yield "train.best.patience: expected null with backup_workers or sync stock, found a number; leave patience out"
    if settings.accumulate < 1:
        yield f"train.accumulate: expected at least 1, found {settings.accumulate}"
    if settings.mode == "async" and settings.sync != Train.sync:
        yield f"train.sync: expected {Train.sync} in mode async, found {settings.sync}; leave it out"
    if settings.local_steps < 1:
        yield f"train.local_steps: expected at least 1, found {settings.local_steps}"
    if settings.local_steps > 1 and settings.mode != "async":
        yield f"train.local_steps: expected 1 in mode sync, found {settings.local_steps}; leave it out"
    if settings.verify:
        yield from unverifiable(settings)
    if settings.sync == "stock":
        yield from _unfit_for_stock(settings)
    if not task.cluster.get("ps"):
        yield "TF_CONFIG: expected at least one ps in the cluster to hold the variables, found none"


def _unfit_for_stock(settings: Train) -> Iterator[str]:
    for key in UNFIT_FOR_STOCK:
        needed, found = getattr(Train, key), getattr(settings, key)
        if found != needed:
            expected = "null" if needed is None else needed
            yield f"train.{key}: expected {expected} with sync stock, found {found}; leave it out, or set sync plain"


def checkpoint_dir(settings: Train, environ: Mapping[str, str]) -> Optional[str]:
    """Return the folder of the run's checkpoints on this host.

    Return None for a task that was started by hand without the key ``checkpoint.dir``.
    """
    if settings.checkpoint.dir:
        return os.path.expanduser(settings.checkpoint.dir)
    folder = environ.get("LAUNCH_TASK_DIR")
    return str(Path(folder).parent / "checkpoint") if folder else None


if __name__ == "__main__":
    outlive_full_disk()
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # TensorFlow's server cannot be stopped, and its threads would block the exit
