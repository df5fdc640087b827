"""The hosts file: one cluster, and the job that it trains.

``load`` reads the file, or refuses the file with all of its mistakes: for each the line, the expected value and the
value found. ``schema`` is the JSON Schema that editors read. The package needs PyYAML, jsonschema and ClusterShell, so
it runs where the launcher runs, not on hosts.

model          the data classes: a spec, its tasks and sections
reading        reads a file into a spec, or lists all that is wrong with the file
yaml_text      reads the YAML of hosts files
yaml_document  a document that remembers where its values were written; ``--set train.steps=100``
place          where a value was written: a line, or an override
schema         the published JSON Schema, and the values of a document that do not fit it
rules          the rules that several sections must fulfil together
section_rules  the rules for the sections ``container``, ``elastic``, ``success``, ``progress`` and ``on``
env_rules      the rules for the values of ``env:``
entries        the items of the roles' lists
host_names     names and ranges of hosts
task_slots     one task of an entry, with its port and GPUs
"""

from cluster.errors import Problem, SpecError
from cluster.protocol.settings import Elastic, Restart
from cluster.spec.model import Gpus, Setup, Spec, Ssh, TaskSpec
from cluster.spec.reading import load
from cluster.spec.schema import schema

__all__ = ["Elastic", "Gpus", "Problem", "Restart", "Setup", "Spec", "SpecError", "Ssh", "TaskSpec", "load", "schema"]
