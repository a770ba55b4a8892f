"""Listening addresses, against sockets that a child of this test opens."""

import subprocess
import sys

import pytest

from enginelab import listening

CHILD = """
import socket, sys
held = [socket.create_server(eval(words), family=getattr(socket, family)) for family, words in {wanted}]
print(*(entry.getsockname()[1] for entry in held), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child():
    running = []

    def start(*wanted):
        code = CHILD.format(wanted=wanted)
        running.append(
            subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        return [int(port) for port in running[-1].stdout.readline().split()]

    def end():
        while running:
            running.pop().communicate()

    start.end = end
    yield start
    end()


def test_finds_what_a_child_listens_on_and_whether_others_can_reach_it(child):
    ports = child(("AF_INET", "('127.0.0.1', 0)"), ("AF_INET", "('', 0)"))
    found = {address.port: address for address in listening.addresses()}
    assert [found[port].host for port in ports] == ["127.0.0.1", "0.0.0.0"]
    assert [found[port].loopback for port in ports] == [True, False]


def test_forgets_what_has_ended(child):
    [port] = child(("AF_INET", "('127.0.0.1', 0)"))
    assert port in {address.port for address in listening.addresses()}
    child.end()
    assert port not in {address.port for address in listening.addresses()}


@pytest.mark.parametrize(
    "text, host, port",
    [
        ("0100007F:1F90", "127.0.0.1", 8080),
        ("00000000:0016", "0.0.0.0", 22),
        ("00000000000000000000000001000000:0050", "::1", 80),
        ("00000000000000000000000000000000:0050", "::", 80),
        ("0000000000000000FFFF00000100007F:0050", "::ffff:7f00:1", 80),
    ],
)
@pytest.mark.skipif(sys.byteorder == "big", reason="the texts are those of a little-endian machine")
def test_reads_the_kernels_addresses(text, host, port):
    assert listening.address(text) == (host, port)


@pytest.mark.parametrize("host, alone", [("::1", True), ("::ffff:127.0.0.1", True), ("::", False), ("10.0.0.1", False)])
def test_knows_loopback_in_both_families(host, alone):
    assert listening.Address(host, 80).loopback is alone
