"""The version and the packages of the tasks' Python, asked of that very Python with the tasks' environment.

The Python really imports TensorFlow: an installed TensorFlow does not always work.
"""

import json
import os
import signal
import subprocess
from typing import Dict, List, Mapping, Optional, Sequence

from launch.agent.containers.command import Container
from launch.agent.linux.processes import describe_exit, die_with
from launch.agent.tasks.one_shot import OneShot

_QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}  # the memory of GPUs may be all in use
# Whatever an import itself prints goes to stderr; each answer is told at once, since the next import may crash.
_QUESTION = """
import json, os, sys
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
def report(name, **values):
    answers.write(json.dumps([name, values]) + "\\n")
    answers.flush()
report("python", version=sys.version.split()[0], path=sys.executable)
def packages():
    for folder in sys.path:
        for entry in os.listdir(folder) if os.path.isdir(folder) else ():
            name, _, version = entry[: -len(".dist-info")].rpartition("-")
            if entry.endswith(".dist-info") and name:
                yield name.replace("_", "-").lower(), version
for name in sys.argv[1:]:
    try:
        if name == "--packages":
            report("packages", **dict(packages()))
            continue
        report(name, version=str(__import__(name).__version__))
    except BaseException as error:
        report(name, error="%s: %s" % (type(error).__name__, error))
"""


class Versions:
    """The answers of a Python, which is asked while this host does other things.

    Args:
      env: the tasks' own variables.
      modules: in the order in which they are imported.
      packages: also return the installed packages, {name: version}, which imports nothing.
      container: the container that has the Python; None for this host's own.
    """

    def __init__(
        self,
        python: str,
        env: Mapping[str, str],
        modules: Sequence[str] = ("numpy", "tensorflow"),
        packages: bool = False,
        container: Optional[Container] = None,
    ):
        asked = [*(["--packages"] if packages else []), *modules]
        self._wanted = ["python", *(["packages"] if packages else []), *modules]
        self._failure: Optional[str] = None
        self._program = OneShot(container, "check")
        command = self._program.command([python, "-c", _QUESTION, *asked], {**env, **_QUIET}, "/")
        try:
            self._process = subprocess.Popen(
                command.argv, env=command.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True, preexec_fn=die_with(os.getpid()),
            )  # fmt: skip
        except OSError as error:
            self._failure = f"cannot start {python}: {os.strerror(error.errno or 0)}"

    def answers(self, timeout_s: float) -> Dict[str, Dict[str, str]]:
        """{"python" or a module: {"version", …} or {"error"}, "packages": {name: version}}"""
        if self._failure is not None:
            return {"python": {"error": self._failure}}
        try:
            told, errors = self._process.communicate(timeout=timeout_s)
            end = describe_exit(self._process.returncode)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)  # not reaped, so the number is still its own
            self._program.end()
            told, errors = self._process.communicate()
            end = f"not done within {timeout_s:.0f} s"
        found: Dict[str, Dict[str, str]] = dict(json.loads(line) for line in told.decode().splitlines())
        unanswered = [name for name in self._wanted if name not in found]
        if unanswered:
            found[unanswered[0]] = {"error": _last(end, errors.decode(errors="replace").splitlines())}
        return found


def _last(end: str, lines: List[str]) -> str:
    return f"{end}: {lines[-1][:200]}" if lines else end
