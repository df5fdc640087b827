"""Runs that stand still, each in its own way, are named within ``quiet_s``, with the line of code and of the log.

All of them run at once, with programs that know nothing of this launcher.
"""

import re
from typing import Any, Dict, Iterator, NamedTuple, Optional, Sequence, Set, Tuple

import pytest

from tests.support.launch.launcher import Launcher, finish
from tests.support.nightly import few
from tests.support.waiting import eventually, let_pass

QUIET_S, PATIENCE_S = 3, 120.0
TRAIN = """
import os, socket, sys, time
how, role, index, ps, workers = sys.argv[1:]
index, again = int(index), os.environ["LAUNCH_ATTEMPT"] != "0"
ps, workers = ps.split(","), workers.split(",")
READY = os.path.join(os.environ["LAUNCH_TASK_DIR"], "..", "ready")


def waits_for_peer():
    while True:
        time.sleep(1000)


def server():
    import tensorflow as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    return tf.train.Server(tf.train.ClusterSpec({"ps": ps, "worker": workers}), role, index)


def trains(batches):
    import tensorflow as tf
    here = server()
    with tf.device(tf.train.replica_device_setter(cluster={"ps": ps, "worker": workers})):
        step = tf.train.get_or_create_global_step()
        of = len(workers)
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), of, total_num_replicas=of)
        train = optimizer.minimize(tf.get_variable("w", [4]), global_step=step)
    while index and not os.path.exists(READY):  # else it looks again after 30 s
        time.sleep(0.1)
    hooks = [optimizer.make_session_run_hook(index == 0, num_tokens=0)]
    filters = ["/job:ps", "/job:worker/task:%d" % index] if how != "late" else None
    session = tf.train.MonitoredTrainingSession(
        here.target, index == 0, hooks=hooks, config=tf.ConfigProto(device_filters=filters)
    )
    with session:
        open(READY, "w").close()
        for batch in range(batches):
            session.run(train)
            print("batch", batch)
        time.sleep(1)  # the thread that applies gradients waits for the next ones by then
        print("leaves")


def rings():
    # Ranks meet once, at their start, as in a ring: a rank that comes back alone finds no one.
    port = int(workers[0].rsplit(":")[-1])
    if index == 0:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("localhost", port))
        listener.listen(1)
        peer, _ = listener.accept()
    else:
        while True:
            try:
                peer = socket.create_connection(("localhost", port))
                break
            except OSError:
                time.sleep(0.1)
    print("met", again)
    if index == 1 and not again:
        sys.exit(1)
    listener = socket.socket()
    listener.bind(("localhost", 0))
    listener.listen(1)
    listener.accept()


if role == "ps" and how in ("rank", "start"):
    waits_for_peer()
elif role == "ps" or (how, index) == ("serves", 1):
    server().join()
elif how == "uneven":
    trains(3 if index else 1000)
elif how == "close":
    trains(3)
elif how == "late" and index == 0:
    trains(1000)
elif how == "late":
    print("waits for its data")
    waits_for_peer()
elif how == "rank":
    rings()
elif how == "start" and index == 1:
    if not again:
        sys.exit(1)
    waits_for_peer()
elif how == "start":
    print("step", 1)
    waits_for_peer()
"""


class Standstill(NamedTuple):
    """A program: what is named of it, {worker: its function and last line}, and the workers that remain.

    A ps is named after the workers.
    """

    quiet: Dict[str, Tuple[str, Optional[str]]]
    remaining: Sequence[str] = ()
    workers: int = 2
    quiet_s: float = QUIET_S


STANDSTILLS = {
    "close": Standstill({"worker:0": ("trains", "leaves")}, workers=1),  # TensorFlow gives up after 120 s
    "uneven": Standstill({"worker:0": ("trains", "batch 2")}, ["worker:0"]),
    # TensorFlow logs every 10 s that it still waits: a line that repeats another one is no sign of work.
    "late": Standstill(
        {"worker:0": ("trains", None), "worker:1": ("waits_for_peer", "waits for its data")}, quiet_s=13
    ),
    "rank": Standstill({"worker:0": ("rings", "met False"), "worker:1": ("rings", None)}),
    "start": Standstill({"worker:0": ("waits_for_peer", "step 1"), "worker:1": ("waits_for_peer", None)}),
    "serves": Standstill({"worker:1": ("<module>", None)}, ["worker:1"]),
}
# A shell that waits for its child, which is in a session of its own and computes a tenth of the time.
COMPUTES = (
    "test {role} = ps && exec sleep 1000; setsid sh -c "
    "'while :; do sleep 0.05; i=0; while test $i -lt 3000; do i=$((i + 1)); done; done' & wait"
)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dict[str, Launcher]]:
    """Every run at once that some test looks at, and one that computes without a word."""
    asked = {each.callspec.params.get("how") for each in request.session.items if hasattr(each, "callspec")}
    started: Dict[str, Launcher] = {}
    beginning = {}
    try:
        for how in ["computes", *(how for how in reversed(list(STANDSTILLS)) if how in asked)]:
            launch = started[how] = Launcher(tmp_path_factory.mktemp(how))
            _write(launch, how)
            beginning[how] = launch.begin("up", "-d")
        for how, process in beginning.items():
            ended = finish(process)
            assert ended.returncode == 0, f"{how}: {ended.stdout}{ended.stderr}"
        yield started
    finally:
        for launch in started.values():
            launch.end()


def _write(launch: Launcher, how: str) -> None:
    (launch.file.parent / "train.py").write_text(TRAIN)
    found = STANDSTILLS.get(how, Standstill({}))
    words = ["{python}", "train.py", how, "{role}", "{index}", "{ps_hosts}", "{worker_hosts}"]
    ps, *workers = [f"localhost:{port}" for port in launch.ports]
    launch.write(
        command=words if found.quiet else ["sh", "-c", COMPUTES],
        cluster={"ps": [ps], "worker": workers[: found.workers]},
        quiet_s=found.quiet_s,
        restart={"max": 1, "backoff_s": 0.1},
        on={"quiet": ["sh", "-c", f"cat >> {launch.folder}/events"]},
    )


def quiet(launch: Launcher) -> Dict[str, Any]:
    return {f"{task['role']}:{task['index']}": task["quiet"] for task in launch.status()["tasks"] if task["quiet"]}


def _if_all(names: Set[str], found: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """What is named, once it is these: a worker that still waits for the chief may be quiet before."""
    return found if set(found) == names else None


@pytest.mark.parametrize("how", few(STANDSTILLS, set(STANDSTILLS) - {"close", "uneven"}))
def test_a_standstill_is_named_with_the_worker_its_line_of_code_and_its_last_line(
    runs: Dict[str, Launcher], how: str
) -> None:
    launch, expected = runs[how], STANDSTILLS[how]
    found = eventually("its name", lambda: _if_all({*expected.quiet, "ps:0"}, quiet(launch)), PATIENCE_S)
    for worker, (function, line) in expected.quiet.items():
        assert re.fullmatch(rf"in \S*train\.py:\d+ \({function}\)", found[worker]["where"])
        assert line is None or found[worker]["line"] == line
        assert function in found[worker]["stack"]
    first = min(expected.quiet, key=lambda name: found[name]["at_s"])
    shown = launch("status").stdout
    assert f": {first}@localhost, in " in shown and "also quiet: ps:0" in shown
    eventually("its event", lambda: (launch.folder / "events").exists(), PATIENCE_S)
    if expected.remaining:
        eventually("who remains", lambda: launch.status()["remaining"], PATIENCE_S)
        assert launch.status()["remaining"]["tasks"] == expected.remaining
        assert f"still there: {', '.join(expected.remaining)}" in launch("status").stdout


def test_a_program_that_computes_without_a_word_is_not_accused_nor_the_ps_that_waits_for_it(
    runs: Dict[str, Launcher],
) -> None:
    for _ in range(2 * QUIET_S):
        assert quiet(runs["computes"]) == {}
        let_pass(1.0)
