"""Fill in the placeholders of a command that are the same for every task of a role.

What differs between them, a TFJob has in ``TF_CONFIG`` alone, and so it has the addresses.
"""

from typing import Dict, List

from cluster.protocol.command_template import names_in
from cluster.spec.model import Spec

PORT = 2222  # the operator's, in every TF_CONFIG


def values_of(spec: Spec, role: str, gpus: int, python: str) -> Dict[str, str]:
    """Return the values of the placeholders that a manifest can have."""
    return {
        "python": python,
        "role": role,
        "port": str(PORT),
        "num_ps": str(len(spec.tasks_of("ps"))),
        "num_workers": str(len(spec.tasks_of("worker"))),
        "gpus": str(gpus),
    }


def without_value(word: str, values: Dict[str, str]) -> List[str]:
    """Return the placeholders of a word that have no value in a manifest."""
    return [name for name in names_in(word) if name not in values]
