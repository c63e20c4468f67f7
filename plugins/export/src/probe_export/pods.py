"""Which pod has which device: the kubelet's own list, asked over its socket.

The kubelet serves gRPC (`v1.PodResourcesLister`, KEP-606) on a socket that root may open. The
answer is small: h2 speaks HTTP/2, and the four messages that count are read here. Devices of DRA
claims have other names, and are not among them.
"""

from __future__ import annotations

import socket
from time import monotonic
from typing import NamedTuple

from probe_export import ExportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from probe_export.prometheus import Family, Labels, Row

SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
_METHOD = "/v1.PodResourcesLister/List"
_SECONDS = 2.0
_MAX_BYTES = 16 << 20
"""kubelet's own limit of an answer (defaultPodResourcesMaxSize)."""

_STREAM = 1
_EMPTY_REQUEST = bytes(5)  # not compressed, and no byte long


class Assignment(NamedTuple):
    """A device of a container, as its device plugin calls it."""

    pod: str
    namespace: str
    container: str
    resource: str
    device: str


def families(given: Iterable[Assignment], devices: Mapping[str, Labels]) -> list[Family]:
    """Return the series that join a device with its pods; `devices` are by their identities.

    One device may have several pods where it is shared in time: so the pod is no label of a
    device's own series, whose sum would count the device twice.
    """
    rows: dict[tuple[str, ...], Row] = {}
    for assignment in given:
        labels = _device(assignment.device, devices)
        if labels is not None:
            pod = {
                "namespace": assignment.namespace,
                "pod": assignment.pod,
                "container": assignment.container,
            }
            whole = {**labels, **pod, "resource": assignment.resource}
            rows[tuple(str(text) for text in whole.values())] = whole, 1
    about = "The container that the kubelet gave it to."
    split: dict[str, list[Row]] = {"device": [], "partition": []}
    for row in rows.values():
        split["partition" if "partition" in row[0] else "device"].append(row)
    return [(f"probecore_{s}_pod", "info", about, listed) for s, listed in split.items() if listed]


def _device(identity: str, devices: Mapping[str, Labels]) -> Labels | None:
    """Return the labels of a device: "GPU-…::3" is the fourth share of one in time.

    GKE's plugin calls an instance "nvidia0/gi7": its card is known, the instance is not.
    """
    whole = identity.partition("::")[0]
    return devices.get(whole) or devices.get(whole.partition("/")[0])


def listed(path: str = SOCKET, seconds: float = _SECONDS) -> list[Assignment]:
    """Return what the kubelet lists; raises `ExportError` where it does not answer as it should."""
    try:
        message = _ask(path, monotonic() + seconds)
        return list(_assignments(message[5 : 5 + int.from_bytes(message[1:5], "big")]))
    except ImportError:
        text = "the pods of devices need h2: pip install 'probe-export[kubernetes]'"
        raise ExportError(text) from None
    except (OSError, ValueError, IndexError) as error:
        raise ExportError(f"{path}: {error}") from None


def _ask(path: str, until: float) -> bytes:
    """Return the message that answers the call, with its five bytes of prefix."""
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    from h2.events import ConnectionTerminated, DataReceived, StreamEnded, StreamReset
    from h2.exceptions import ProtocolError

    talk = H2Connection(H2Configuration(client_side=True, header_encoding=None))
    talk.initiate_connection()
    headers = {":method": "POST", ":scheme": "http", ":path": _METHOD, ":authority": "localhost"}
    headers |= {"te": "trailers", "content-type": "application/grpc"}
    talk.send_headers(_STREAM, list(headers.items()))
    talk.send_data(_STREAM, _EMPTY_REQUEST, end_stream=True)
    answer = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(max(0.001, until - monotonic()))
        connection.connect(path)
        while True:
            connection.settimeout(max(0.001, until - monotonic()))
            connection.sendall(talk.data_to_send())
            data = connection.recv(1 << 16)
            if not data:
                raise ValueError("the kubelet hung up")
            try:
                events = talk.receive_data(data)
            except ProtocolError as error:
                raise ValueError(f"no HTTP/2: {error}") from None
            for event in events:
                if isinstance(event, DataReceived):
                    answer += event.data
                    talk.acknowledge_received_data(event.flow_controlled_length, _STREAM)
                elif isinstance(event, StreamEnded) and len(answer) >= len(_EMPTY_REQUEST):
                    return answer
                elif isinstance(event, (StreamEnded, StreamReset, ConnectionTerminated)):
                    raise ValueError("the kubelet answered with an error")
            if len(answer) > _MAX_BYTES:
                raise ValueError("the answer is too long")


def _assignments(message: bytes) -> Iterator[Assignment]:
    for pod in _parts(message, 1):
        name, namespace = _text(pod, 1), _text(pod, 2)
        for container in _parts(pod, 3):
            for devices in _parts(container, 2):
                for identity in _parts(devices, 2):
                    device = identity.decode("utf-8", "replace")
                    of = (_text(container, 1), _text(devices, 1), device)
                    yield Assignment(name, namespace, *of)


def _text(message: bytes, number: int) -> str:
    return next(iter(_parts(message, number)), b"").decode("utf-8", "replace")


def _parts(message: bytes, wanted: int) -> Sequence[bytes]:
    """Return the fields of a message with that number, which are texts or messages.

    Raises `ValueError` or `IndexError` for what is no message of Protocol Buffers.
    """
    parts, at = [], 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == 2:
            length, at = _varint(message, at)
            if at + length > len(message):
                raise ValueError("a message is cut short")
            if key >> 3 == wanted:
                parts.append(message[at : at + length])
            at += length
        elif key & 7 == 0:
            _, at = _varint(message, at)
        else:
            at += {1: 8, 5: 4}[key & 7] if key & 7 in (1, 5) else len(message) + 1
    if at > len(message):
        raise ValueError("a message is cut short")
    return parts


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        byte = message[at + place]
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value, at + place + 1
    raise ValueError("a number without an end")
