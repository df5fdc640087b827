"""The attacks of ``make attack``, as a table."""

from typing import List

from tests.attack.siege import RECORDED, ROOT, STRANGER, WORKDIR, Attack

OWN, NEIGHBOUR = 0, 2  # hosts: the lead's, and one that is none of the cluster


def port(port: int, *options: str) -> List[str]:
    """Options of an intruder that connects to the lead."""
    return ["--host", "h1", "--port", str(port), *options]


def attacks(lead: int, idle: int) -> List[Attack]:
    """All attacks on a lead's port, with so many idle connections."""
    found = []
    for who, host, user in (("another user", OWN, STRANGER), ("a neighbour", NEIGHBOUR, ROOT)):
        found += [
            Attack(f"{who}: {idle} idle connections", "idle", host, user,
                   port(lead, "--count", str(idle), "--seconds", "12")),
            Attack(f"{who}: garbage", "garbage", host, user, port(lead, "--count", "1000")),
            Attack(f"{who}: a byte a second", "slow", host, user, port(lead, "--count", "300", "--seconds", "12")),
            Attack(f"{who}: lines without an end", "huge", host, user,
                   port(lead, "--count", "60", "--seconds", "8")),
            Attack(f"{who}: forged proofs and messages", "forged", host, user, port(lead, "--count", "300")),
        ]  # fmt: skip
    found += [
        Attack("a neighbour: a member's words replayed", "replayed", NEIGHBOUR, ROOT,
               port(lead, "--count", "20", "--file", RECORDED),
               lambda seen: not seen["answered"] and seen["bytes"] > 0),
        Attack("another user: reads the run's files", "read", OWN, STRANGER, ["--file", WORKDIR],
               lambda seen: not seen["read"]),
    ]  # fmt: skip
    return found
