"""Requests to a process of its own, one line of JSON each, and its answers; one that does not answer is ended.

TensorFlow's servers cannot be stopped, so a process answers only some requests before another takes its place.
"""

import ctypes
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional

ROOT = Path(__file__).resolve().parents[2]
Answer = Dict[str, Any]


class Asked:
    """A process that runs ``python -m module``; it is started when it is first asked.

    ``lives``: how many requests one process answers.
    """

    def __init__(self, python: Path, module: str, log: Path, lives: int):
        self._argv = [str(python), "-W", "ignore", "-m", module]
        self._log, self._lives = log, lives
        self._process: Optional[Any] = None
        self._left = 0

    def ask(self, request: Mapping[str, Any], timeout_s: float) -> Answer:
        """The answer; ``{"hung": seconds}`` where none comes in time, ``{"died": exit code}`` where none will come."""
        process = self._living()
        self._left -= 1
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        if not _has_something(process.stdout, timeout_s):
            self.end()
            return {"hung": timeout_s}
        line = process.stdout.readline()
        if line:
            answer: Answer = json.loads(line)
            return answer
        code = process.wait()
        self._process = None
        return {"died": code}

    def end(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _living(self) -> Any:
        if self._left <= 0:
            self.end()
        if self._process is None:
            self._left = self._lives
            env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2", "TF_ENABLE_ONEDNN_OPTS": "0"}
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    self._argv, cwd=str(ROOT), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
                )
        return self._process


def answer_all(answer: Callable[[Dict[str, Any]], Answer]) -> None:
    """The life of the process that is asked. What else it prints goes where its errors go."""
    _die_with_parent()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(f"--- {line.strip()[:300]}", flush=True)
        answers.write(json.dumps(_answered(answer, json.loads(line))) + "\n")
        answers.flush()
    os._exit(0)  # threads of servers that nobody ended are still there


def _die_with_parent() -> None:
    """Has the kernel end this process with the one that asks, as who hangs does not see that nobody asks any more."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() == 1:
        os._exit(0)


def _answered(answer: Callable[[Dict[str, Any]], Answer], request: Dict[str, Any]) -> Answer:
    try:
        return answer(request)
    except Exception as error:
        traceback.print_exc()
        return {"raised": f"{type(error).__name__}: {error}"[:500]}


def _has_something(stream: Any, timeout_s: float) -> bool:
    """Tell whether there is something to read in time, whatever number of files this process has open."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return bool(selector.select(timeout_s))
