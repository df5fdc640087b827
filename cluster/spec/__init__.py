"""The hosts file: one cluster, and what it trains.

``load`` reads it, and refuses it with every mistake that it has, each with its line,
what was expected and what was found. ``schema`` is the JSON Schema that editors read.
Needs PyYAML, jsonschema and ClusterShell: it runs where the launcher runs, not on hosts.

model          the nouns: a spec, its tasks and sections
reading        a file into a spec, or all that is wrong with it
yaml_text      the YAML that hosts files are written in
yaml_document  a document that remembers where its values were written; ``--set train.steps=100``
place          where a value was written: a line, or an override
schema         the published JSON Schema, and a document held against it
rules          the rules between the sections
section_rules  the rules for the sections ``container``, ``elastic`` and ``on``
entries        the items of the roles' lists
host_names     names and ranges of hosts
task_slots     one task of an entry, and the port and GPUs that it is given
"""

from cluster.errors import Problem, SpecError
from cluster.protocol.settings import Elastic, Restart
from cluster.spec.model import Gpus, Setup, Spec, Ssh, TaskSpec
from cluster.spec.reading import load
from cluster.spec.schema import schema

__all__ = ["Elastic", "Gpus", "Problem", "Restart", "Setup", "Spec", "SpecError", "Ssh", "TaskSpec", "load", "schema"]
