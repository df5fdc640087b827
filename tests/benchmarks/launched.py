"""A run that `launch up` starts on fake hosts over SSH, to be measured: 36.5 MB in 47 variables of odd shapes."""

import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, Mapping

from tests.benchmarks.graphs import SHAPES
from tests.benchmarks.speed import job
from tests.benchmarks.speed.running import ENDLESS
from tests.support.hosts import FakeHosts

PATIENCE_S = 600.0


@contextlib.contextmanager
def launched(
    hosts: FakeHosts, number: int, folder: Path, restart: Mapping[str, Any] = {}
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a run of ``number`` workers and as many ps, a host each; yield its `launch up`, and end the run.

    The run has the name of ``folder``, in which the hosts file is and ``up.log``. ``restart``: settings of the file.
    """
    file = folder / "hosts.yaml"
    shutil.copy(str(job.__file__), str(folder / "model.py"))
    file.write_text(json.dumps(_settings(hosts, number, folder.name, restart)))
    with (folder / "up.log").open("wb") as log:
        up = subprocess.Popen([sys.executable, "-m", "launch", "up", str(file)], stdout=log, stderr=log)
    try:
        yield up
    finally:
        subprocess.run([sys.executable, "-m", "launch", "down", str(file)], check=False, stdout=subprocess.DEVNULL)
        up.wait(PATIENCE_S)


def _settings(hosts: FakeHosts, number: int, name: str, restart: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "name": name,
        "python": sys.executable,
        "ssh": {"config": str(hosts.ssh_config), "known_hosts": str(hosts.known_hosts)},
        "cluster": {"worker": [f"h[1-{number}]"], "ps": [f"h[{number + 1}-{2 * number}]"]},
        "job": "model.py",
        "args": {"shapes": SHAPES},
        "train": {"steps": ENDLESS, "batch_size": 1},
        "restart": dict(restart),
    }
