"""The child that reads sites' and vendors' chip files.

It is no prober: it has the hook because that is what a child runs.
"""

from __future__ import annotations

from probe_core.api import Request, hookimpl
from probe_core.resolve.tables import read_in_pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["probe_devices"]


@hookimpl
def probe_devices(request: Request) -> Iterator[dict[str, object]]:
    """Yield the tables of the files and packages that the host has ordered, in pieces."""
    (order,) = request.bus
    return read_in_pieces(order["files"], order["packages"])
