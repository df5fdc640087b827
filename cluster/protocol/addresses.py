"""The parts of a task's address, and the rule on addresses that the internet can reach.

The module needs only the standard library, because both hosts and launcher use the module.
"""

import ipaddress
from typing import Dict, List, Mapping, Optional, Sequence, Union

EXPECTED = "an address that the internet cannot reach"
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")  # hosts that mean this machine
PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")  # variables; with a proxy, servers hang
ADVICE = "give the task a private address, or set guard: nftables, or allow_public: true"

Meaning = Union[Sequence[str], str]  # the addresses of a name, or the reason for their absence


def may_be_public(guard: Optional[str], allow_public: Optional[bool]) -> bool:
    """Return whether tasks may have public addresses: the hosts file has ``guard`` or ``allow_public``."""
    return bool(guard or allow_public)


def exposed(hosts: Mapping[str, str], resolved: Mapping[str, Meaning]) -> Dict[str, List[str]]:
    """Return the public addresses of each task that the internet can reach: {task: addresses}.

    Args:
      hosts: the host of each task, by task: a name or an IP address.
      resolved: the addresses of each name, or the reason why the name has none. A host that is not in ``resolved``
        is an address itself.
    """
    meanings = {task: resolved.get(host, [host]) for task, host in hosts.items()}
    public = {
        task: [] if isinstance(meaning, str) else list(filter(is_public, meaning)) for task, meaning in meanings.items()
    }
    return {task: addresses for task, addresses in public.items() if addresses}


def is_public(address: str) -> bool:
    """Return whether ``address`` is an IP address that the internet routes.

    A host name is not public. Private, loopback, link-local, shared (100.64.0.0/10) and documentation
    addresses are not public. An IPv4 address inside an IPv6 address is judged as the IPv4 address.
    """
    try:
        parsed = ipaddress.ip_address(address.split("%")[0])  # without the zone of a link-local address
    except ValueError:
        return False
    inner = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (inner or parsed).is_global


def port_of(address: str) -> int:
    """Return the port of ``host:port`` or ``[::1]:port``."""
    return int(address.rsplit(":", 1)[1])


def host_of(address: str) -> str:
    """Return the host of ``host:port`` or ``[::1]:port``."""
    return address.rsplit(":", 1)[0].strip("[]")
