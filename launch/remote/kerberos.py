"""Kerberos tickets for hosts, where the SSH configuration asks for them.

The Python package gssapi provides Kerberos. The launcher does not require gssapi, which is built against a site's
libraries. Without gssapi or a ticket, the launcher offers only keys, and a refusal names the reason.
"""

import importlib
import re
import socket
import sys
import threading
from typing import Any, List, Mapping, NamedTuple, Optional

PACKAGE = "gssapi"
_NUMBERED = re.compile(r"^Major.*Minor \(\d+\): (?=.)")
MECHANISM = "1.2.840.113554.1.2.2"  # Kerberos 5


class Kerberos(NamedTuple):
    """The options of the SSH configuration for one host.

    Attributes:
      host: the dialled name.
      logs_in: GSSAPIAuthentication.
      delegates: GSSAPIDelegateCredentials: the host receives a ticket of the user.
      trusts_dns: GSSAPITrustDns: the ticket is for the host's name in DNS.
      exchanges_keys: GSSAPIKeyExchange, which the launcher replaces by host keys.
    """

    host: str
    logs_in: bool = False
    delegates: bool = False
    trusts_dns: bool = False
    exchanges_keys: bool = False


def read(options: Mapping[str, Any], host: str) -> Kerberos:
    """Return the Kerberos options in the SSH configuration for a host."""

    def is_set(name: str) -> bool:
        return str(options.get(name.lower(), "no")).lower() == "yes"

    return Kerberos(
        host,
        is_set("GSSAPIAuthentication"),
        is_set("GSSAPIDelegateCredentials"),
        is_set("GSSAPITrustDns"),
        is_set("GSSAPIKeyExchange"),
    )


def has_ticket() -> bool:
    """Return whether this user has a valid ticket. The function asks no server."""
    try:
        gssapi: Any = importlib.import_module(PACKAGE)
        return bool(gssapi.Credentials(usage="initiate", mechs=[_mechanism(gssapi)]).lifetime)
    except Exception:  # for any reason, which the login itself reports
        return False


def obstacle(wanted: Kerberos, timeout_s: float) -> Optional[str]:
    """Return the reason why no ticket for the host is available, with the next step; None if a ticket is available.

    The library waits for the Kerberos servers for as long as the site has configured. So a thread calls the library,
    bounded by the time of a login. The ticket is then in the user's cache, and the login itself asks no server.
    """
    try:
        importlib.import_module(PACKAGE)
    except Exception as error:  # also for incompatible Kerberos libraries
        found = f"{sys.executable} cannot import {PACKAGE} ({error})"
        return f"{found}; install it with `{sys.executable} -m pip install {PACKAGE}`"
    refusals: List[Optional[str]] = [f"no answer from a server of Kerberos within {timeout_s:g} s; see `kinit`"]
    asking = threading.Thread(target=lambda: refusals.append(_refusal(wanted)), daemon=True)
    asking.start()
    asking.join(timeout_s)
    return refusals[-1]


def _refusal(wanted: Kerberos) -> Optional[str]:
    try:
        context(wanted._replace(delegates=False)).step()
    except Exception as error:  # the package has dozens of classes, which share none below this one
        return f"{reason(error)}; see `klist`, and get a ticket with `kinit`"
    return None


def reason(error: Exception) -> str:
    """Return the part of a library error that a person can act on, without its numbers."""
    return _NUMBERED.sub("", " ".join(str(error).split()))


def context(wanted: Kerberos) -> Any:
    """Return a new exchange of tokens with the host: ``step``, ``complete`` and ``get_signature``."""
    gssapi: Any = importlib.import_module(PACKAGE)
    flag = gssapi.RequirementFlag
    # The two flags that RFC 4462 requires: the host proves its identity too, and signatures are possible.
    flags = flag.mutual_authentication | flag.integrity
    host = socket.getfqdn(wanted.host) if wanted.trusts_dns else wanted.host
    return gssapi.SecurityContext(
        name=gssapi.Name(f"host@{host}", gssapi.NameType.hostbased_service),
        mech=_mechanism(gssapi),
        flags=flags | flag.delegate_to_peer if wanted.delegates else flags,
        usage="initiate",
    )


def _mechanism(gssapi: Any) -> Any:
    return gssapi.OID.from_int_seq(MECHANISM)
