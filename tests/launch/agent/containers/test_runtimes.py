"""A missing runtime or image is an error with the next step; of several runtimes the one with the image is taken."""

from pathlib import Path
from typing import Dict, Optional

import pytest

from cluster.protocol.settings import Container
from launch.agent.containers import runtimes
from launch.agent.containers.control import NoAnswer, RuntimeResult
from launch.agent.containers.runtimes import Lacking


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Dict[str, str]:
    """The installed runtimes and the image of each; "" for one that does not work."""
    has: Dict[str, str] = {}

    def ask(program: str, *arguments: str) -> RuntimeResult:
        if has[program] == "hangs":
            raise NoAnswer(f"{program} does not answer within 20 s")
        works = bool(has[program])
        found = works and (arguments[0] == "images" or arguments[-1] == has[program])
        return RuntimeResult(0 if found else 1, "", "" if works else "no daemon")

    monkeypatch.setattr(runtimes, "ask", ask)
    monkeypatch.setattr("shutil.which", lambda name: name if name in has else None)
    return has


def lacking(image: str, runtime: Optional[str] = None) -> str:
    with pytest.raises(Lacking) as error:
        runtimes.find(Container(image, runtime=runtime), [Path("/w")])
    return str(error.value)


def test_no_runtime(installed: Dict[str, str]) -> None:
    assert lacking("tf") == (
        "container.runtime: expected podman or docker on this host, found none; "
        "install it, or choose another with container.runtime"
    )
    assert lacking("/tf.sif").startswith("container.runtime: expected apptainer on this host, found none")


def test_no_image(installed: Dict[str, str], tmp_path: Path) -> None:
    installed.update(podman="other", apptainer="-")
    assert lacking("tf") == (
        "container.image: expected tf among the images of podman on this host, found none; "
        "pull it on that host: `podman pull tf`"
    )
    assert f"expected the file {tmp_path}/tf.sif on this host, found none" in lacking(f"{tmp_path}/tf.sif")


def test_a_runtime_that_does_not_work_is_no_missing_image(installed: Dict[str, str]) -> None:
    installed["docker"] = ""
    assert "expected docker to work on this host, found: no daemon" in lacking("tf", runtime="docker")
    installed["docker"] = "hangs"
    assert "found: docker does not answer within 20 s" in lacking("tf", runtime="docker")


def test_the_first_runtime_that_has_the_image_is_taken(installed: Dict[str, str], tmp_path: Path) -> None:
    installed.update(podman="other", docker="tf", apptainer="-")
    assert runtimes.find(Container("tf"), [Path("/w")]).runtime == "docker"
    installed["podman"] = "tf"
    assert runtimes.find(Container("tf"), [Path("/w")]).runtime == "podman"
    (tmp_path / "tf.sif").touch()
    assert runtimes.find(Container(f"{tmp_path}/tf.sif"), [Path("/w")]).runtime == "apptainer"


def test_a_task_sees_the_working_folder_and_that_of_checkpoints(installed: Dict[str, str], tmp_path: Path) -> None:
    installed["podman"] = "tf"
    for checkpoints, seen in (
        (None, ["w"]),
        (f"{tmp_path}/w/c", ["w"]),
        (f"{tmp_path}/c", ["w", "c"]),
        ("s3://b", ["w"]),
    ):
        found = runtimes.of_run(Container("tf"), tmp_path / "w", checkpoints)
        assert found is not None and found.folders == tuple(f"{tmp_path}/{name}" for name in seen)
    (tmp_path / "file").touch()
    with pytest.raises(Lacking, match="a folder for the container on this host, found"):
        runtimes.of_run(Container("tf"), tmp_path, f"{tmp_path}/file/c")
    assert runtimes.of_run(None, tmp_path) is None
    with pytest.raises(Lacking, match="a folder without ':' and ',', found /a:b; choose another folder"):
        runtimes.find(Container("tf"), [Path("/a:b")])
