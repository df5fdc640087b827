"""A stand-in for ``srun`` on this machine: ``python stand_in.py OPTIONS /bin/sh -c LINE`` runs the line.

It is as strict as a cluster with control groups: when the line's process ends, all that it left is killed. A signal to
end ends the step. The last words on stderr are those of the real one.
"""

import ctypes
import os
import signal
import sys
from typing import List

_PR_SET_CHILD_SUBREAPER = 36


def children() -> List[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(each) for each in file.read().split()]


def end() -> None:
    """Kill whatever is left of the step, children of children, too: they become ours as their parents die."""
    while children():
        for each in children():
            os.kill(each, signal.SIGKILL)
        os.wait()


def main() -> None:
    argv = sys.argv[sys.argv.index("/bin/sh") :]
    host = next(word.partition("=")[2] for word in sys.argv if word.startswith("--nodelist="))
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    program = os.fork()
    if program == 0:
        os.execvpe(argv[0], argv, {**os.environ, "SLURM_STEP_ID": "0", "SLURMD_NODENAME": host})
    signal.signal(signal.SIGTERM, lambda *_: os.kill(program, signal.SIGKILL))
    pid, status = 0, 0
    while pid != program:
        pid, status = os.wait()
    end()
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 137
    if code:
        sys.stderr.write(f"srun: error: {host}: task 0: Exited with exit code {code}\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
