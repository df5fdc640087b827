"""The hosts file: one cluster, and what it trains.

``load`` reads it, and refuses it with every mistake that it has, each with its line,
what was expected and what was found. ``schema`` is the JSON Schema that editors read.
Needs PyYAML, jsonschema and ClusterShell: it runs where the launcher runs, not on hosts.
"""

from cluster.errors import Problem, SpecError
from cluster.spec.model import Elastic, Gpus, Restart, Setup, Spec, Ssh, TaskSpec
from cluster.spec.reading import load
from cluster.spec.schema import schema

__all__ = ["Elastic", "Gpus", "Problem", "Restart", "Setup", "Spec", "SpecError", "Ssh", "TaskSpec", "load", "schema"]
