"""The limits that a task in a container can have.

A container of apptainer inherits every limit. Podman and docker run a container outside the agent's processes and
control groups. There the agent watches memory itself, and the runtime limits open files.
"""

from dataclasses import replace
from typing import Optional

from launch.agent.containers.command import RunContainers
from launch.agent.limits.control_groups import GroupPlace
from launch.agent.limits.enforcement import Enforcement, LimitedHost

_NOT_INHERITED = ("processors", "numa_node", "nice")


def in_containers(host: LimitedHost, container: Optional[RunContainers]) -> LimitedHost:
    """Return a host as tasks in its containers find it."""
    if container is None or not container.is_named:
        return host
    runtime = container.runtime

    def find_place() -> GroupPlace:
        raise OSError(f"{runtime} has groups of its own")

    def refusal(enforcement: Enforcement) -> Optional[str]:
        given = [key for key in _NOT_INHERITED if getattr(enforcement.limits, key) is not None]
        if given:
            names = ", ".join(f"limits.{key}" for key in given)
            mend = "use its own options in container.args"
            return f"{names}: expected apptainer, whose containers inherit limits, found {runtime}; {mend}"
        return host.refusal(enforcement)

    return replace(host, find_place=find_place, refusal=refusal)
