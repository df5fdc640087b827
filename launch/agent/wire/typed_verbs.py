"""The verbs that the launcher calls with a dataclass: the types of their requests and of their answers."""

from dataclasses import dataclass
from typing import Generic, Type, TypeVar

from launch.agent.wire.flight import HostFlights
from launch.agent.wire.run_request import RunRequest
from launch.agent.wire.verb_requests import (
    DownRequest,
    FlightRequest,
    GraphAnswer,
    LookRequest,
    PruneRequest,
    RunsRequest,
    SweepRequest,
)
from launch.status.removals import PruneAnswer, RunEnded, RunLeftovers, SweepAnswer
from launch.status.run import RunsAnswer

Request = TypeVar("Request")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class TypedVerb(Generic[Request, Answer]):
    """A verb of ``verb_table``, by its name, with the dataclasses of its request and its answer."""

    name: str
    request: Type[Request]
    answer: Type[Answer]


DOWN = TypedVerb("down", DownRequest, RunEnded)
FLIGHT = TypedVerb("flight", FlightRequest, HostFlights)
GRAPH = TypedVerb("graph", RunRequest, GraphAnswer)
LOOK = TypedVerb("look", LookRequest, RunLeftovers)
PRUNE = TypedVerb("prune", PruneRequest, PruneAnswer)
RUNS = TypedVerb("runs", RunsRequest, RunsAnswer)
SWEEP = TypedVerb("sweep", SweepRequest, SweepAnswer)
