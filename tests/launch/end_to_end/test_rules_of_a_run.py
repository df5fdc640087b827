"""Whole runs whose hosts file says when tasks restart, when the run has succeeded, and how long it may take."""

from tests.support.launch.launcher import Launcher

WAITS = "exec sleep 1000"  # for a rank that never comes back to it


def ranks(launch: Launcher, script: str, **keys: object) -> None:
    """A hosts file of two workers and no ps."""
    launch.write(script, cluster={"worker": [f"localhost:{port}" for port in launch.ports[1:]]}, **keys)


def test_ranks_that_meet_only_at_the_start_begin_again_together(launch: Launcher) -> None:
    ranks(
        launch,
        f"echo rank {{index}}; test $LAUNCH_ATTEMPT = 1 && exit 0; test {{index}} = 1 && exit 1; {WAITS}",
        restart={"max": 1, "backoff_s": 0.1},
    )
    ended = launch("up")
    assert ended.returncode == 0, ended.stderr
    assert [task["restarts"] for task in launch.status()["tasks"]] == [1, 1]
    assert [launch.log(f"worker:{index}", 1) for index in (0, 1)] == ["rank 0\n", "rank 1\n"]


def test_a_rank_that_restarts_alone_leaves_the_other_as_it_is(launch: Launcher) -> None:
    ranks(
        launch,
        "test {index} = 0 && exec sleep 2; test $LAUNCH_ATTEMPT = 1",
        restart={"max": 1, "backoff_s": 0.1, "together": False},
    )
    assert launch("up").returncode == 0
    assert [task["restarts"] for task in launch.status()["tasks"]] == [0, 1]


def test_a_run_succeeds_with_the_worker_that_success_names(launch: Launcher) -> None:
    ranks(launch, f"test {{index}} = 1 && exit 0; {WAITS}", success="worker:1", leave_s=0)
    assert launch("up").returncode == 0
    assert [task["state"] for task in launch.status()["tasks"]] == ["stopped", "succeeded"]


def test_a_run_is_stopped_at_its_deadline_and_says_so(launch: Launcher) -> None:
    ranks(launch, WAITS, deadline_s=2)
    ended = launch("up")
    status = launch.status()
    assert (ended.returncode, status["state"]) == (1, "stopped")
    assert status["cause"] == f"deadline_s of 2 s has passed; continue with `launch up {launch.file}`"
    assert status["cause"] in ended.stdout


def test_the_same_error_twice_ends_a_program_at_once(launch: Launcher) -> None:
    (launch.file.parent / "train.py").write_text("raise ValueError('no column 3')\n")
    ranks(launch, "exec {python} train.py", restart={"max": 5, "backoff_s": 0.1})
    ended = launch("up")
    assert ended.returncode == 1
    assert "ValueError: no column 3; the same error twice, without progress in between" in ended.stdout
    assert [task["restarts"] for task in launch.status()["tasks"]] == [1, 1]
