"""Kill tasks at random while every example of some files is trained once, and count by the ledger.

    python -m tests.chaos.ledger_trials --trials 100 --seed 200
    python -m tests.chaos.ledger_trials --mode async

Each trial draws files, workers, ps, epochs, batches and kills from its seed, and starts real processes. The model's own
variable counts how often each worker trained each example (``tests.support.training.jobs.ledger``). Exit code 1 if an
example is lost, is trained twice, or a trial does not end. In asynchronous training a batch may count twice for each
death of a worker, if the log of a worker names it.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence

import numpy as np

from cluster.runtime.tf_compat import tf
from tests.support.training.jobs import ledger
from tests.support.training.processes import Cluster

NAMED = r"shards: records (\d+) to (\d+) of shard .* may count twice"
JOB, MOST_WORKERS, END_S = "tests.support.training.jobs.ledger", 3, 120.0


class Kill(NamedTuple):
    """One SIGKILL, of the task, so many seconds after the first step or the last kill."""

    role: str
    number: int
    after_s: float


class Trial(NamedTuple):
    workers: int
    ps: int
    files: int
    args: Dict[str, Any]
    train: Dict[str, Any]
    kills: List[Kill]


def drawn(seed: int, mode: str = "sync") -> Trial:
    dice = random.Random(f"ledger {seed}" if mode == "sync" else f"ledger {mode} {seed}")
    kinds = ["lines", "records", "sparse" if mode == "sync" else "embedding"]
    workers, ps = dice.choice([1, 2, 2, 3]), dice.choice([1, 2])
    args = {
        "examples": dice.randint(1500, 4000), "workers": MOST_WORKERS, "shard_bytes": dice.choice([400, 2000, 1 << 20]),
        "shuffle": dice.choice([0, 50]), "kind": dice.choice(kinds),
        "pause_ms": dice.choice([0, 0, 5, 20]),
    }  # fmt: skip
    train = {
        "epochs": dice.choice([1, 1, 2]), "batch_size": dice.choice([4, 8, 16]), "towers": dice.choice([1, 1, 2]),
        "checkpoint": {"every_s": dice.choice([1, 2])}, **({} if mode == "sync" else {"mode": mode}),
    }  # fmt: skip
    tasks = [*(("worker", index) for index in range(workers)), ("worker", 0), ("worker", 0), ("ps", dice.randrange(ps))]
    kills = [Kill(*dice.choice(tasks), after_s=dice.uniform(0.3, 2.8)) for _ in range(dice.choice([1, 2, 3]))]
    return Trial(workers, ps, dice.randint(1, 12), args, train, kills)


class Result(NamedTuple):
    """``wrong``: in words, nothing if all is as it should be. ``twice``: examples too many. ``named``: in the logs."""

    wrong: str
    twice: int
    named: int


def outcome_of(trial: Trial, folder: Path) -> Result:
    """Start the tasks of a trial, kill them, wait for the end, and count."""
    data, kept = folder / "data", folder / "kept"
    data.mkdir()
    ledger.write(str(data), trial.args["examples"], trial.files)
    args = {**trial.args, "files": str(data)}
    train = {**trial.train, "checkpoint": {**trial.train["checkpoint"], "dir": str(kept)}}
    with Cluster(folder, JOB, ps=trial.ps, workers=trial.workers) as cluster:
        cluster.start_all(train, args)
        for kill in trial.kills:
            inflict(cluster, kill, train, args)
        until = time.monotonic() + END_S
        while running(cluster) and time.monotonic() < until:
            time.sleep(0.1)
        ended = {key: process.poll() for key, process in cluster.running.items()}
        logs = "".join(cluster.log("worker", index) for index in range(trial.workers))
    if set(ended.values()) != {0}:
        return Result(f"exit codes {ended}", 0, 0)
    return result(trial, str(tf.train.latest_checkpoint(str(kept))), logs)


def running(cluster: Cluster) -> bool:
    return any(process.poll() is None for process in cluster.running.values())


def inflict(cluster: Cluster, kill: Kill, train: Dict[str, Any], args: Dict[str, Any]) -> None:
    """Kill a task, and start it again; a task that has ended stays so."""
    key = kill.role, kill.number
    while cluster.step() < 1 and running(cluster):
        time.sleep(0.02)
    time.sleep(kill.after_s)
    if cluster.running[key].poll() is None and cluster.outcome(*key) is None:
        cluster.kill(*key)
        if cluster.outcome(*key) is None:  # else it had just ended in order
            cluster.start(*key, train, args)


def result(trial: Trial, checkpoint: str, logs: str) -> Result:
    epochs = int(trial.train["epochs"])
    counts = ledger.counts(checkpoint, trial.args["examples"])
    lost, twice = (int(np.maximum(each, 0).round().sum()) for each in (epochs - counts, counts - epochs))
    progress = tf.train.load_checkpoint(checkpoint).get_tensor("shards/progress")
    all_done = bool((progress == [epochs, 0]).all())
    named = sum(int(end) - int(begin) + 1 for begin, end in re.findall(NAMED, logs))
    most = deaths(trial) * trial.train["batch_size"] * trial.train["towers"]
    ok = lost == 0 and all_done and twice <= min(named, most)
    words = "" if ok else f"{lost} lost, {twice} twice, {named} named, at most {most}, all done: {all_done}"
    return Result(words, twice, named)


def deaths(trial: Trial) -> int:
    """After how many kills a batch may count twice."""
    asynchronous = trial.train.get("mode") == "async"
    return sum(kill.role == "worker" for kill in trial.kills) if asynchronous else 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", choices=["sync", "async"], default="sync")
    wanted, failed, twice = parser.parse_args(arguments), 0, 0
    for seed in range(wanted.seed, wanted.seed + wanted.trials):
        with tempfile.TemporaryDirectory(prefix="ledger-") as folder:
            trial = drawn(seed, wanted.mode)
            found = outcome_of(trial, Path(folder))
        failed, twice = failed + bool(found.wrong), twice + found.twice
        print(json.dumps({"seed": seed, **found._asdict(), **trial._asdict()}), flush=True)
    print(f"{wanted.trials - failed} of {wanted.trials} trials as they should be; {twice} examples too many in all")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
