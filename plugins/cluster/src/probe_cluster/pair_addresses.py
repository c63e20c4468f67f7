"""The addresses by which this node can be reached; sent to nodes as a part of `pair_agent`."""

from __future__ import annotations

import os
import socket
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["addresses", "boot_id"]

_MOST_ADDRESSES = 8

# Bridges of container engines and hypervisors: each host has the same address on its own.
_LOCAL_BRIDGES = ("docker", "br-", "veth", "virbr", "cni", "flannel", "cali", "lxc", "podman")

_SIOCGIFADDR = 0x8915


def addresses(environ: Mapping[str, str] = os.environ) -> list[list[str]]:
    """Return [interface, address] of this node, that by which its user reaches it first."""
    pairs = [pair for pair in [*_ipv4(), *_ipv6()] if not pair[0].startswith(_LOCAL_BRIDGES)]
    names = {address: interface for interface, address in pairs}
    first = [*environ.get("SSH_CONNECTION", "").split()[2:3], *_default_addresses()]
    ordered = list(dict.fromkeys([*first, *names]))
    outside = [address for address in ordered if not _is_loopback(address)]
    return [[names.get(address, ""), address] for address in outside[:_MOST_ADDRESSES]]


def _is_loopback(address: str) -> bool:
    return address.startswith(("127.", "::ffff:127.")) or address in ("::1", "0.0.0.0", "::")


def _ipv4() -> list[tuple[str, str]]:
    """Return the interfaces with their first address; nothing where the system has no such call."""
    try:
        import fcntl

        names = [name for _, name in socket.if_nameindex()]
    except (ImportError, OSError):
        return []
    pairs = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for name in names if sys.platform == "linux" else ():
            try:
                request = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
            except OSError:  # it has no address
                continue
            pairs.append((name, socket.inet_ntoa(answer[20:24])))
    return pairs


def _ipv6() -> list[tuple[str, str]]:
    try:
        with open("/proc/net/if_inet6", encoding="ascii") as file:
            rows = [line.split() for line in file]
    except OSError:
        return []
    # Scope 00 is global: a link's own address (20) is of no use without the name of the interface.
    return [
        (row[5], socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[0])))
        for row in rows
        if len(row) > 5 and row[3] == "00"
    ]


def _default_addresses() -> list[str]:
    """Return the addresses from which packets leave; none is sent: connecting UDP only routes."""
    origins = []
    # Addresses of documentation (RFC 5737, RFC 3849).
    for family, peer in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((peer, 9))
                origins.append(str(probe.getsockname()[0]))
        except OSError:  # no route
            pass
    return origins


def boot_id() -> str:
    """Return what two agents on one running kernel share."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return f"{sys.platform}/{os.uname().nodename}"
