"""The wheel has everything that the launcher needs and nothing of the tests, and works where it is installed."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Set

import pytest

from launch.agent.linux.sockets import free_ports
from launch.hosts.bundle import launcher_code
from tests.support import ROOT

ROOMS = ("cluster", "launch", "jobs")
OWN = "launch_ps"  # the folder that has all of ours
LOCKS = {
    "launch_ps/launch/environments/tf1.lock": "requirements/tf1.lock",
    "launch_ps/launch/environments/tf2.lock": "requirements/tf2.lock",
}
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
ABSENT = "raise ModuleNotFoundError('No module named ' + repr(__name__))\n"
HERE = "import os, sys, launch_ps; sys.path.insert(0, os.path.dirname(launch_ps.__file__)); "
OWN_LOCKS = HERE + "from launch.environments import identity; print(identity.own_locks())"
SHIPPED = HERE + "from launch.hosts.bundle import launcher_code; print(launcher_code().hashes['launcher'])"


def run(*argv: str, cwd: Path) -> str:
    """What a command prints that ends with 0; the checkout is not on its path."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        argv, cwd=str(cwd), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the checkout: a build leaves folders beside what it builds."""
    folder = tmp_path_factory.mktemp("wheel")
    for room in (*ROOMS, "requirements", "tests/support"):
        shutil.copytree(str(ROOT / room), str(folder / "copy" / room), ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "launch_ps.py", "README.md", "LICENSE"):
        shutil.copy(str(ROOT / name), str(folder / "copy"))
    run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", "out", "./copy", cwd=folder)
    (built,) = (folder / "out").iterdir()
    return built


@pytest.fixture(scope="module")
def venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of the wheel and the locked packages, in which neither TensorFlow nor numpy can be imported.

    Somebody else's packages there have the names of two of ours.
    """
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", ".", cwd=folder)
    python = folder / "bin" / "python"
    run(*PIP, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel), cwd=folder)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "locked.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for name in ("tensorflow", "numpy"):
        (site / f"{name}.py").write_text(ABSENT)
    for name in ("jobs", "launch"):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(f"print('{name} of somebody else')\n")
    return folder


def files(room: str) -> Set[str]:
    """The files of a room of the checkout, but for caches."""
    found = (path for path in (ROOT / room).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in found}


def test_the_wheel_has_every_file_of_the_packages_the_locks_of_setup_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(str(wheel)) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
        locks = {name: archive.read(name) for name in LOCKS}
    ours = {f"{OWN}/{name}" for name in set().union(*map(files, ROOMS))}
    assert inside == {*LOCKS, *ours, f"{OWN}.pth", f"{OWN}/__init__.py"}
    assert locks == {name: (ROOT / source).read_bytes() for name, source in LOCKS.items()}


def test_the_wheel_names_its_license_and_has_its_text(wheel: Path) -> None:
    with zipfile.ZipFile(str(wheel)) as archive:
        (text,) = (archive.read(name) for name in archive.namelist() if name.endswith("/LICENSE"))
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
    assert text == (ROOT / "LICENSE").read_bytes()
    assert "\nLicense: Apache-2.0\n" in metadata


def test_an_author_imports_cluster_as_in_a_checkout_and_others_keep_their_packages(venv: Path, tmp_path: Path) -> None:
    printed = run(str(venv / "bin" / "python"), "-c", "import cluster, jobs; print(cluster.__file__)", cwd=tmp_path)
    (site,) = venv.glob("lib/python*/site-packages")
    assert printed.splitlines() == ["jobs of somebody else", f"{site}/{OWN}/cluster/__init__.py"]


def test_an_installed_launcher_needs_no_tensorflow_to_plan(venv: Path, tmp_path: Path) -> None:
    (tmp_path / "three.yaml").write_text("job: digits\ncluster: {ps: [cpu01], worker: [gpu01, gpu02]}\n")
    launch = str(venv / "bin" / "launch")
    assert "launch up hosts.yaml" in run(launch, "-h", cwd=tmp_path)
    printed = run(launch, "plan", "three.yaml", cwd=tmp_path)
    assert "worker:[0-1]  gpu[01-02]" in printed and f"{venv}/bin/python has no TensorFlow" in printed


def test_an_installed_launcher_knows_the_version_of_its_wheel(venv: Path, wheel: Path, tmp_path: Path) -> None:
    version = wheel.name.split("-")[1]
    assert run(str(venv / "bin" / "launch"), "--version", cwd=tmp_path) == f"launch, version {version}\n"


def test_an_installed_launcher_ships_the_code_that_a_checkout_ships(venv: Path, tmp_path: Path) -> None:
    assert run(str(venv / "bin" / "python"), "-c", SHIPPED, cwd=tmp_path).split() == [
        launcher_code().hashes["launcher"]
    ]


def test_an_installed_launcher_reads_the_locks_of_its_wheel(venv: Path, tmp_path: Path) -> None:
    (site,) = venv.glob("lib/python*/site-packages")
    assert run(str(venv / "bin" / "python"), "-c", OWN_LOCKS, cwd=tmp_path).split() == [
        f"{site}/{OWN}/launch/environments"
    ]


def test_an_installed_launcher_trains_on_a_python_that_has_tensorflow(venv: Path, tmp_path: Path) -> None:
    ps, worker = free_ports(2)
    (tmp_path / "one.yaml").write_text(
        f"job: digits\ncluster: {{ps: ['localhost:{ps}'], worker: ['localhost:{worker}']}}\n"
        f"train: {{steps: 20, towers: 1}}\npython: {sys.executable}\nworkdir: {tmp_path}/work\n"
    )
    assert "succeeded: step 20" in run(str(venv / "bin" / "launch"), "up", "one.yaml", cwd=tmp_path)
