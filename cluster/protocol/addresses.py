"""Find the network addresses that the internet can reach.

The module needs only the standard library, because hosts and launcher both use it.
"""

import ipaddress


def is_public(address: str) -> bool:
    """Return whether ``address`` is an IP address that the internet routes.

    A host name is not public. Private, loopback, link-local, shared (100.64.0.0/10) and documentation
    addresses are not public. An IPv4 address inside an IPv6 one counts as itself.
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
