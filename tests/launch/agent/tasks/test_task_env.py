"""What a task's process finds in its environment: its plan, what the plan does not say, and who it is."""

from pathlib import Path

import pytest

from launch.agent.containers.command import outside
from launch.agent.tasks.task_env import own_variables


def test_an_attempt_is_told_who_it_is_and_which_gpus_it_has() -> None:
    env = own_variables({"PYTHONUNBUFFERED": "1"}, {}, 2, Path("/t/worker.0"), [0, 3], {})
    told = {key: env[key] for key in ("PYTHONUNBUFFERED", "LAUNCH_ATTEMPT", "LAUNCH_TASK_DIR", "CUDA_VISIBLE_DEVICES")}
    assert list(told.values()) == ["1", "2", "/t/worker.0", "0,3"]


def test_the_plan_goes_before_the_agents_own_and_what_is_newer_before_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA", "the agent's")
    monkeypatch.setenv("HOME", "/home/a")
    own = own_variables(
        {"DATA": "the plan's", "TF_CONFIG": "of formation 0"}, {"TF_CONFIG": "of formation 1"}, 0, Path(), [], {}
    )
    env = {**outside(), **own}
    assert (env["HOME"], env["DATA"], env["TF_CONFIG"]) == ("/home/a", "the plan's", "of formation 1")
    assert env["CUDA_VISIBLE_DEVICES"] == ""


def test_values_name_variables_of_the_host_of_the_task_and_of_the_launcher_and_no_secret() -> None:
    planned = {"PATH": "/opt/bin:$PATH", "OUT": "$BASE/$LAUNCH_ATTEMPT", "BASE": "/s/$LAUNCH_RUN", "LAUNCH_RUN": "r-1",
               "NO": "[$KEY]", "CUDA_VISIBLE_DEVICES": "all"}  # fmt: skip
    env = own_variables(planned, {"KEY": "se$PATH$$cret"}, 2, Path("/t"), [1], {"PATH": "/bin", "HOME": "/h"})
    assert {name: env[name] for name in ("PATH", "OUT", "NO", "KEY", "CUDA_VISIBLE_DEVICES")} == {
        "PATH": "/opt/bin:/bin", "OUT": "/s/r-1/2", "NO": "[]", "KEY": "se$PATH$$cret", "CUDA_VISIBLE_DEVICES": "1",
    }  # fmt: skip


def test_no_proxy_of_the_agents_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "grpc_proxy", "no_proxy"):
        monkeypatch.setenv(name, "p")
    assert {"HTTPS_PROXY", "grpc_proxy", "no_proxy"}.intersection(outside()) == {"no_proxy"}
