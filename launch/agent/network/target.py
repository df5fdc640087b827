"""Where a task, or an agent, is dialled."""

from typing import NamedTuple

from cluster.addresses import host_of, port_of


class Target(NamedTuple):
    """Where a task will listen: its address as the others dial it, and the host it is on."""

    address: str
    host: str

    @property
    def name(self) -> str:
        """What has to be resolved."""
        return host_of(self.address)

    @property
    def port(self) -> int:
        """The address's port."""
        return port_of(self.address)
