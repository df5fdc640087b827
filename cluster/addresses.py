"""Which network addresses the internet can reach. Standard library only: hosts and launcher both ask."""

import ipaddress


def is_public(address: str) -> bool:
    """Whether ``address`` is an IP address that the internet routes; a host name is none.

    Private, loopback, link-local, shared (100.64.0.0/10) and documentation addresses are not
    public. An IPv4 address inside an IPv6 one counts as itself.
    """
    try:
        parsed = ipaddress.ip_address(address.split("%")[0])  # without the zone of a link-local address
    except ValueError:
        return False
    inner = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (inner or parsed).is_global


def port_of(address: str) -> int:
    """The port of ``host:port`` or ``[::1]:port``."""
    return int(address.rsplit(":", 1)[1])


def host_of(address: str) -> str:
    """The host of ``host:port`` or ``[::1]:port``."""
    return address.rsplit(":", 1)[0].strip("[]")
