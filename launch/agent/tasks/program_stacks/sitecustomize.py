"""A module that lets a Python program write the stacks of its threads when the agent asks for them.

Python imports a module named ``sitecustomize`` before a program. This one registers a handler of ``faulthandler``, and
then runs the host's module of that name, which Python would import without this folder. No error here may keep a
program from starting. Python 2 reads this file, too: it writes no stacks, and runs the host's module.
"""

import os
import sys

FILE, ABOVE = "program_stacks.txt", 100  # the number of the file: programs may count on the low ones
HERE = os.path.dirname(os.path.abspath(__file__))


def register():
    # type: () -> None
    """Make Python write its stacks on the signal SIGRTMAX - 5, unless the program has its own handler for it."""
    import faulthandler
    import fcntl
    import signal

    number = signal.SIGRTMAX - 5
    if signal.getsignal(number) != signal.SIG_DFL:
        return
    low = os.open(os.path.join(os.environ["LAUNCH_TASK_DIR"], FILE), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    file = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, ABOVE)
    os.close(low)
    faulthandler.register(number, file, all_threads=True)


def run_next():
    # type: () -> None
    """Remove this folder from ``sys.path``, and run the next module of the name ``sitecustomize``, if one exists."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HERE]
    if sys.version_info[0] == 2:  # noqa: UP036, for programs of any Python
        del sys.modules["sitecustomize"]
        __import__("sitecustomize")
        return
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    found = PathFinder.find_spec("sitecustomize", sys.path)
    if found is not None and found.loader is not None:
        module = module_from_spec(found)
        sys.modules["sitecustomize"] = module
        found.loader.exec_module(module)


if os.environ.get("LAUNCH_TASK_DIR"):
    try:  # noqa: SIM105, which Python 2 does not have
        register()
    except Exception:  # a program without stacks is better than none
        pass
    run_next()
