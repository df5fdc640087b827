"""Every verb of an agent: its request, its answer, and the function that runs it on the host.

    start     starts an agent that outlives this process; answers when the agent is ready. With ``again`` in the
              request, the agent replaces a dead one; a living agent stays
    return    restarts the agent of a detached run after a boot; its request is in the folder that argv names
    attach    joins this process's stdin and stdout to the running agent
    status    reports the newest run of a name, from its agent or, without an agent, from its files
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
"""

from dataclasses import dataclass
from typing import Any, Dict, Generic, Optional, Tuple, Type, TypeVar

from launch.agent.wire.flight import HostFlights
from launch.agent.wire.run_request import RunRequest
from launch.agent.wire.verb_requests import (
    BuildRequest,
    DownRequest,
    DrainRequest,
    ExportRequest,
    FlightRequest,
    GraphAnswer,
    HandoverRequest,
    HeldRequest,
    LogsRequest,
    PruneRequest,
    RestartRequest,
    RunReference,
    RunsRequest,
    SweepRequest,
)
from launch.status.removals import PruneAnswer, RunEnded, RunLeftovers, SweepAnswer
from launch.status.run import RunsAnswer

Request = TypeVar("Request")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Verb(Generic[Request, Answer]):
    """A verb.

    Attributes:
      name: its name, in argv.
      function: ``module:name`` of the function that runs the verb, loaded only for the verb.
      request: the dataclass of its request; None where the function reads requests by itself.
      answer: the dataclass of its answer; dict where ``launch.hosts.answer_shapes`` describes its answers.
      ends: the functions of ``launch.agent.__main__`` by which the function exchanges lines with the launcher; () where
        the function returns its only answer.
    """

    name: str
    function: str
    request: Optional[Type[Request]]
    answer: Type[Answer]
    ends: Tuple[str, ...] = ()


DOWN = Verb("down", "launch.agent.verbs.down:down", DownRequest, RunEnded)
FLIGHT = Verb("flight", "launch.agent.state.newest_spans:of_host", FlightRequest, HostFlights)
GRAPH = Verb("graph", "launch.agent.service.chief_command:mistake", RunRequest, GraphAnswer)
LOOK = Verb("look", "launch.agent.verbs.down:look", RunReference, RunLeftovers)
PRUNE = Verb("prune", "launch.agent.retention.pruning:answer", PruneRequest, PruneAnswer)
RUNS = Verb("runs", "launch.agent.verbs.runs:runs", RunsRequest, RunsAnswer)
SWEEP = Verb("sweep", "launch.agent.verbs.sweep:sweep", SweepRequest, SweepAnswer)

TELL, GOES = "tell", "launcher_goes"
AnyVerb = Verb[Any, Any]
_UNTYPED: Tuple[AnyVerb, ...] = (
    Verb("start", "launch.agent.service.beginning:start", RunRequest, dict),
    Verb("return", "launch.agent.service.beginning:return_to_run", None, dict),
    Verb("attach", "launch.agent.protocol.local_socket:attach", RunReference, dict, (TELL,)),
    Verb("status", "launch.agent.verbs.status:status", RunReference, dict),
    Verb("restart", "launch.agent.verbs.status:restart", RestartRequest, dict),
    Verb("drain", "launch.agent.verbs.status:drain", DrainRequest, dict),
    Verb("logs", "launch.agent.verbs.logs:logs", LogsRequest, dict, (TELL, GOES)),
    Verb("check", "launch.agent.verbs.check:check", None, dict, ("read_values", TELL)),
    Verb("board", "launch.agent.verbs.board:board", RunReference, dict, (TELL,)),
    Verb("diagnose", "launch.agent.diagnosis.sections:diagnose", None, dict, ("read_values", TELL)),
    Verb("find", "launch.agent.state.runs:find", RunReference, dict),
    Verb("export", "launch.agent.service.chief_command:export", ExportRequest, dict, (TELL,)),
    Verb("held", "launch.agent.checkpoints.resume:held", HeldRequest, dict),
    Verb("take", "launch.agent.checkpoints.replication:take", HandoverRequest, dict, (TELL,)),
    Verb("give", "launch.agent.checkpoints.replication:give", HandoverRequest, dict, (TELL,)),
    Verb("build", "launch.agent.environments.pip_build:build", BuildRequest, dict, (TELL, "read_some", GOES)),
)
_TYPED: Tuple[AnyVerb, ...] = (DOWN, FLIGHT, GRAPH, LOOK, PRUNE, RUNS, SWEEP)
VERBS: Dict[str, AnyVerb] = {verb.name: verb for verb in (*_TYPED, *_UNTYPED)}
