"""On which addresses the programs that this one started listen: the proof that nobody else can reach them. (Labs.)"""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from . import supervisor

LISTEN = "0A"  # the state of a listening socket in /proc/net/tcp
SOCKET = re.compile(r"socket:\[(\d+)\]")


class Address(NamedTuple):
    """An address and a TCP port on which a program listens."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        host = ipaddress.ip_address(self.host)
        return (getattr(host, "ipv4_mapped", None) or host).is_loopback  # a server of both kinds has ::ffff:127.0.0.1


def addresses() -> list[Address]:
    """Where the descendants of this process listen for TCP, sorted (Linux; elsewhere `RuntimeError`).

    This process is not looked at: a notebook's kernel has ports of its own.
    """
    if not supervisor.LINUX:
        raise RuntimeError("only Linux tells, in /proc, on which addresses a process listens")
    ours = {inode for pid in supervisor.descendants() for inode in _sockets(pid)}
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except FileNotFoundError:
            continue  # a kernel without IPv6
        for _, local, _, state, *rest in (line.split() for line in lines):
            if state == LISTEN and rest[5] in ours:
                found.add(address(local))
    return sorted(found)


def address(text: str) -> Address:
    """The address in an entry of /proc/net/tcp or tcp6, such as 0100007F:1F90: words in the machine's byte order."""
    host, port = text.split(":")
    words = (int(host[i : i + 8], 16).to_bytes(4, sys.byteorder) for i in range(0, len(host), 8))
    return Address(str(ipaddress.ip_address(b"".join(words))), int(port, 16))


def _sockets(pid: int) -> list[str]:
    try:
        links = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []  # it ended meanwhile
    return [match[1] for link in links if (match := SOCKET.fullmatch(link))]
