"""The hosts file: one cluster, and what it trains.

``load`` reads it, and refuses it with every mistake that it has, each with its line,
what was expected and what was found. ``schema`` is the JSON Schema that editors read.
Needs PyYAML, jsonschema and ClusterShell: it runs where the launcher runs, not on hosts.

model       the nouns: a spec, its tasks and sections
reading     a file into a spec, or all that is wrong with it
file_text   the text of a file, never that of a pipe or a huge one
yaml_text   the YAML that hosts files are written in
document    a document that remembers where its values were written
place       where a value was written: a line, or an override
overrides   ``--set train.steps=100``
schema      the published JSON Schema
validation  a document held against the schema
rules       the rules between the sections
container   the rules for ``container``
elastic     the rules between ``elastic``, ``spares`` and the rest
hooks       the receivers of a run's events, the key ``on``
entries     the items of the roles' lists
host_names  names and ranges of hosts
slots       one task of an entry, before it has port and GPUs
ports       gives every task its port
gpus        gives every task its GPUs
assembly    a spec from a document in which nothing is wrong
"""

from cluster.errors import Problem, SpecError
from cluster.spec.model import Elastic, Gpus, Restart, Setup, Spec, Ssh, TaskSpec
from cluster.spec.reading import load
from cluster.spec.schema import schema

__all__ = ["Elastic", "Gpus", "Problem", "Restart", "Setup", "Spec", "SpecError", "Ssh", "TaskSpec", "load", "schema"]
