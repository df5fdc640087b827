"""The variables of PyTorch's launcher, ``torchrun``, in the environment of every task.

RANK counts the tasks that train: the chief first, then the workers by index. A ps and an evaluator train nothing, so
they have no RANK and no LOCAL_RANK. An elastic run has none of the variables, because its cluster changes.
"""

from collections import Counter
from itertools import chain
from typing import Counter as Count
from typing import Dict, Optional

from cluster.protocol.addresses import host_of, port_of
from cluster.spec.model import Spec
from cluster.spec.task_slots import LAST_PORT
from cluster.task import TRAINERS

_FIRST_PORT = 1024  # below are the ports of root


def rank_variables(spec: Spec, control: Optional[str]) -> Dict[str, Dict[str, str]]:
    """Return the variables of each task, {task: {name: value}}.

    Args:
      control: the ``host:port`` of the lead agent on the chief's host; None for a run on one host.
    """
    if spec.elastic is not None:
        return {}
    trainers = [task for role in TRAINERS for task in spec.tasks_of(role)]
    common = {
        "WORLD_SIZE": str(len(trainers)),
        "MASTER_ADDR": host_of(spec.chief.address),
        "MASTER_PORT": str(_master_port(spec, control)),
    }
    found = {task.name: dict(common) for task in spec.tasks}
    on_host: Count[str] = Counter()
    for rank, task in enumerate(trainers):
        found[task.name].update(RANK=str(rank), LOCAL_RANK=str(on_host[task.host]))
        on_host[task.host] += 1
    return found


def _master_port(spec: Spec, control: Optional[str]) -> int:
    """Return a port of the chief's host that is none of the run's own: the next one above them, or else below."""
    if spec.master_port is not None:
        return spec.master_port
    host = spec.chief.host
    taken = {task.port for task in spec.tasks if task.host == host}
    taken |= {port_of(control)} if control is not None else set()
    top = max(taken)
    return next(port for port in chain(range(top + 1, LAST_PORT + 1), range(top, _FIRST_PORT, -1)) if port not in taken)
