"""Every verb of an agent, and the function that runs it on the host.

    start     starts an agent that outlives this process; answers when the agent is ready. With ``again`` in the
              request, the agent replaces a dead one; a living agent stays
    return    restarts the agent of a detached run after a boot; its request is in the folder that argv names
    attach    joins this process's stdin and stdout to the running agent
    status    reports the newest run of a name, from its agent or, without an agent, from its files
    linked    names the hosts whose agents are linked to the lead of the newest run; on the lead
    restart   ends tasks of the newest run, so that their next attempts begin; on the lead
    drain     drains tasks of the newest run, or takes tasks back; on the lead
    logs      sends lines of task logs, with follow until the run is over
    flight    reports the newest steps of this host's tasks
    check     opens ports, dials the ports of other hosts, and reports the facts of this host
    look      reports the processes and files of a run on this host now
    board     runs TensorBoard on the newest run's summaries, until the launcher leaves
    sweep     reports the leftovers of earlier runs on this host; ends them on request
    prune     reports removable past runs and code; removes them on request
    diagnose  sends all facts that may explain the state of a run, piece by piece
    find      reports the runs of a name that this host knows: the newest, and its lead
    runs      reports the runs of every name on this host
    down      ends this host's part of a run and reports its leftovers
    graph     builds the graph of a job without training, and reports its mistake
    export    builds the SavedModel of a checkpoint, and sends it
    held      reports the checkpoints on this host that a run could resume from
    take      receives a checkpoint that another host gives
    give      sends a checkpoint to another host
    build     builds the Python environment of the tasks

Except for ``return``, the request is one JSON line, and the answers are JSON lines. No secret is in argv.

``typed_verbs`` has the dataclasses with which the launcher calls some verbs. No verb's process loads that module: to
load all its dataclasses takes as long as the start of Python.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Callable, Dict, Tuple


@dataclass(frozen=True)
class Verb:
    """A verb of an agent, and the function that runs it.

    Attributes:
      name: the name of the verb, in argv.
      path: ``module:name`` of the function that runs the verb. The dataclass of the verb's request is the type of the
        function's first argument.
      ends: the names of functions of ``launch.agent.__main__``. The verb's function gets them as arguments, to exchange
        lines with the launcher; () where the function returns its only answer.
      has_request: whether ``launch.agent.__main__`` reads a request for the function; False where the function reads
        requests by itself, or has none.
    """

    name: str
    path: str
    ends: Tuple[str, ...] = ()
    has_request: bool = True

    def function(self) -> Callable[..., Any]:
        """Return the function that runs the verb; this call imports only the module of that function."""
        module, name = self.path.split(":")
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function


TELL, READ, GOES = "tell", "read_values", "launcher_goes"
_VERBS = (
    Verb("start", "launch.agent.service.beginning:start"),
    Verb("return", "launch.agent.service.beginning:return_to_run", has_request=False),
    Verb("attach", "launch.agent.protocol.local_socket:attach", (TELL,)),
    Verb("status", "launch.agent.verbs.status:status"),
    Verb("linked", "launch.agent.verbs.status:linked"),
    Verb("restart", "launch.agent.verbs.status:restart"),
    Verb("drain", "launch.agent.verbs.status:drain"),
    Verb("logs", "launch.agent.verbs.logs:logs", (TELL, GOES)),
    Verb("flight", "launch.agent.state.newest_spans:of_host"),
    Verb("check", "launch.agent.verbs.check:check", (READ, TELL), has_request=False),
    Verb("look", "launch.agent.verbs.down:look_first"),
    Verb("board", "launch.agent.verbs.board:board", (TELL,)),
    Verb("sweep", "launch.agent.verbs.sweep:sweep"),
    Verb("prune", "launch.agent.retention.pruning:answer"),
    Verb("diagnose", "launch.agent.diagnosis.sections:diagnose", (READ, TELL), has_request=False),
    Verb("find", "launch.agent.state.runs:find"),
    Verb("runs", "launch.agent.verbs.runs:runs"),
    Verb("down", "launch.agent.verbs.down:down"),
    Verb("graph", "launch.agent.service.chief_command:mistake"),
    Verb("export", "launch.agent.service.chief_command:export", (TELL,)),
    Verb("held", "launch.agent.checkpoints.resume:held"),
    Verb("take", "launch.agent.checkpoints.replication:take", (TELL,)),
    Verb("give", "launch.agent.checkpoints.replication:give", (TELL,)),
    Verb("build", "launch.agent.environments.pip_build:build", (TELL, "read_some", GOES)),
)
VERBS: Dict[str, Verb] = {verb.name: verb for verb in _VERBS}
