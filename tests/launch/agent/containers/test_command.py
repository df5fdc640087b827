"""The commands of the three runtimes: all that a task needs arrives inside, and no value is among the arguments."""

from typing import Any

import pytest

from launch.agent.containers.command import Inside, RunContainers, command, exit_code

SECRET = "s3cret $HOME"
ENV = {"TF_CONFIG": "{}", "CUDA_VISIBLE_DEVICES": "2,3", "KEY": SECRET}
INSIDE = Inside("launch.r.worker.0.0.7.1", ["python3", "-m", "jobs.main"], ENV, "/w/code/1", has_gpus=True)


def container(runtime: str, **changed: Any) -> RunContainers:
    given = {"image": "tf", "args": ("--further",), "folders": ("/w", "/ckpt"), "user": (1000, 100), **changed}
    return RunContainers(runtime, f"/usr/bin/{runtime}", **given)


def test_apptainer_shows_the_folders_of_the_run_and_nothing_of_the_home_folder() -> None:
    argv, env = command(container("apptainer", image="/tf.sif"), INSIDE, {"HOST": "own"})
    assert argv == [
        "/usr/bin/apptainer", "exec", "--cleanenv", "--no-eval", "--no-home", "--pwd", "/w/code/1",
        "--bind", "/w", "--bind", "/ckpt", "--nv", "--further", "/tf.sif", "python3", "-m", "jobs.main",
    ]  # fmt: skip
    assert env["APPTAINERENV_KEY"] == SECRET and env["APPTAINERENV_TF_CONFIG"] == "{}"
    assert env["APPTAINERENV_LAUNCH_CONTAINER"] == INSIDE.name
    assert env["APPTAINERENV_HTTPS_PROXY"] == "" and env["HOST"] == "own"
    assert "KEY" not in env  # the runtime's own process is none of the container's


def test_apptainer_which_has_the_hosts_tmp_shows_the_attempts_own_folder_in_it() -> None:
    argv, _ = command(container("apptainer"), INSIDE._replace(temporary="/tmp/launch-1"), {})
    assert argv[argv.index("/tmp/launch-1") - 1] == "--bind"


def test_podman_and_docker_run_a_named_container_on_the_hosts_network_with_the_hosts_pids() -> None:
    for runtime in ("podman", "docker"):
        argv, env = command(container(runtime), INSIDE, {"HOST": "own"})
        assert argv[:4] == [f"/usr/bin/{runtime}", "run", "--name", INSIDE.name]
        assert {"--network=host", "--pid=host", "--ipc=host", "--pull=never", "--volume=/ckpt:/ckpt"} < set(argv)
        assert argv[-6:] == ["--further", "--entrypoint", "python3", "tf", "-m", "jobs.main"]
        assert "--env=KEY" in argv and "--env=http_proxy" in argv and env["http_proxy"] == ""
        assert argv[argv.index("--workdir") + 1] == "/w/code/1"
        assert env["KEY"] == SECRET and "LAUNCH_CONTAINER" not in env


@pytest.mark.parametrize("runtime", ["apptainer", "podman", "docker"])
def test_no_value_of_a_variable_is_an_argument(runtime: str) -> None:
    assert SECRET not in " ".join(command(container(runtime), INSIDE, {}).argv)


def test_a_path_for_the_container_is_not_that_of_its_runtime() -> None:
    inside = INSIDE._replace(env={"PATH": "/in", "LD_LIBRARY_PATH": "/cuda"})
    argv, env = command(container("podman"), inside, {"PATH": "/usr/bin"})
    assert {"--env=PATH=/in", "--env=LD_LIBRARY_PATH=/cuda"} < set(argv)
    assert env["PATH"] == "/usr/bin" and "LD_LIBRARY_PATH" not in env
    argv, env = command(container("apptainer"), inside, {"PATH": "/usr/bin"})
    assert (env["PATH"], env["APPTAINERENV_PATH"]) == ("/usr/bin", "/in")


def test_files_of_a_task_belong_to_the_user_who_started_it() -> None:
    assert "--userns=keep-id" in command(container("podman"), INSIDE, {}).argv
    assert "--user=0:0" in command(container("podman", user=(0, 0)), INSIDE, {}).argv
    assert "--user=1000:100" in command(container("docker"), INSIDE, {}).argv


def test_a_task_without_gpus_sees_none_and_a_limit_of_open_files_is_the_runtimes_to_set() -> None:
    gpus = {"apptainer": "--nv", "podman": "--device=nvidia.com/gpu=all", "docker": "--gpus=all"}
    for runtime, option in gpus.items():
        assert option in command(container(runtime), INSIDE, {}).argv
        bare = command(container(runtime), INSIDE._replace(has_gpus=False, nofile=64, reads=True, once=True), {}).argv
        assert option not in bare
        assert {"--ulimit=nofile=64:64", "--interactive", "--rm"} <= {*bare} or runtime == "apptainer"


def test_a_runtimes_exit_code_of_a_signal_is_that_signal() -> None:
    assert [exit_code(code) for code in (0, 3, 125, 137, 143, 255, -9)] == [0, 3, 125, -9, -15, 255, -9]
