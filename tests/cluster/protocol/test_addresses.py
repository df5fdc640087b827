"""What counts as an address that the internet can reach."""

import pytest

from cluster.protocol.addresses import host_of, is_public


@pytest.mark.parametrize("address", ["8.8.8.8", "2600::1", "::ffff:8.8.8.8"])
def test_an_address_that_the_internet_routes_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1", "172.31.0.1", "192.168.1.1", "127.0.0.1", "::1", "169.254.1.1", "fe80::1%eth0", "fd00::1",
     "100.64.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "::ffff:10.0.0.1", "gpu01", "8.8.8"],
)  # fmt: skip
def test_private_shared_and_documentation_addresses_and_names_are_not(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(("address", "host"), [("gpu01:2222", "gpu01"), ("[fd00::1]:2222", "fd00::1")])
def test_the_host_of_an_address_has_neither_port_nor_brackets(address: str, host: str) -> None:
    assert host_of(address) == host
