"""Plans of hosts files that tests write."""

from pathlib import Path
from typing import Callable

from cluster.spec import Spec, load
from launch.hosts.bundle import Bundle, Code, JobCode
from launch.plan.plan import Plan, make_plan

RUN = "r-20261120-155902"
OWN = "/venv/bin/python"
CODE = Code({"launcher": Bundle(b"", "1" * 16), "job": Bundle(b"", "2" * 16)})
TWO = """
cluster:
  ps:     ["cpu[01-02]:2222"]
  worker: [{host: "gpu[01-02]", port: 2300, gpus: [0, 1]}]
"""
Read = Callable[[str], Spec]  # what the fixture ``read`` gives


def read(folder: Path, text: str) -> Spec:
    """The spec of a text, in a file r.yaml."""
    (folder / "r.yaml").write_text(text)
    return load(folder / "r.yaml")


def plan_of(spec: Spec, entry: str = "digits.py", folder: Path = Path("/jobs")) -> Plan:
    """What ``launch`` makes of it, on a machine where nothing of it need exist."""
    return make_plan(spec, JobCode(folder, entry), RUN, OWN)
