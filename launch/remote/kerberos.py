"""Kerberos tickets for hosts, where the SSH configuration asks for them.

The Python package gssapi brings Kerberos. It is built against the libraries of a site, so the launcher does not require
it. Where it is missing, or no ticket can be had, the launcher offers keys alone, and a refusal names the reason.
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
      host: the name that is dialled.
      logs_in: GSSAPIAuthentication.
      delegates: GSSAPIDelegateCredentials: the host gets a ticket of the user.
      trusts_dns: GSSAPITrustDns: the ticket is for the name that DNS has for the host.
      exchanges_keys: GSSAPIKeyExchange, in whose place the launcher has host keys alone.
    """

    host: str
    logs_in: bool = False
    delegates: bool = False
    trusts_dns: bool = False
    exchanges_keys: bool = False


def read(options: Mapping[str, Any], host: str) -> Kerberos:
    """Return what the SSH configuration asks for a host with these options."""

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
    """Return whether this user has a ticket that is good now. The function asks no server."""
    try:
        gssapi: Any = importlib.import_module(PACKAGE)
        return bool(gssapi.Credentials(usage="initiate", mechs=[_mechanism(gssapi)]).lifetime)
    except Exception:  # of any reason, which the login itself reports
        return False


def obstacle(wanted: Kerberos, timeout_s: float) -> Optional[str]:
    """Return why no ticket for the host can be had, with the next step; None where one can.

    The library waits for the servers of Kerberos as long as the site has configured. So a thread asks it, in the time
    of a login. The ticket then lies in the user's cache, and the login itself asks no server for it.
    """
    try:
        importlib.import_module(PACKAGE)
    except Exception as error:  # also of libraries of Kerberos that do not fit
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
    """Return the part of an error of the library that a person can act on, without its numbers."""
    return _NUMBERED.sub("", " ".join(str(error).split()))


def context(wanted: Kerberos) -> Any:
    """Return a new exchange of tokens with the host: ``step``, ``complete`` and ``get_signature``."""
    gssapi: Any = importlib.import_module(PACKAGE)
    flag = gssapi.RequirementFlag
    # The two that RFC 4462 asks for: the host proves itself as well, and signatures are possible.
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
