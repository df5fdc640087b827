"""The address at which a task, or an agent, is dialled."""

from typing import NamedTuple

from cluster.protocol.addresses import host_of, port_of


class Target(NamedTuple):
    """The address at which the others will dial a task, and the task's host."""

    address: str
    host: str

    @property
    def name(self) -> str:
        """Return the host name that has to be resolved."""
        return host_of(self.address)

    @property
    def port(self) -> int:
        """The address's port."""
        return port_of(self.address)
