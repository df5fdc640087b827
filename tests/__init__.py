"""Tests; those of a module lie where the module lies: of ``launch/x/y.py`` in ``launch/x/test_y.py``.

launch        the launcher and its agents; ``launch/end_to_end`` has whole runs
cluster       training
jobs          the jobs that come with the project
differential  models beside plain TensorFlow in one process, in every way
chaos         random faults, injected into runs on fake hosts
attack        attacks on a run, as another user and as a neighbour
benchmarks    what is measured, and how
support       what tests share, in rooms with maps
"""

import signal
from typing import Any, Dict

# Launchers that tests, trials and benchmarks start heed these signals, also where a shell has started these in its
# background: what is ignored at the start stays ignored.
_HANDLERS: Dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
for _number, _handler in _HANDLERS.items():
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)
