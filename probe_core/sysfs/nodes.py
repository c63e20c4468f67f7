"""Names the nodes in /dev that a program opens to use a device.

A sighting's ``nodes`` has them. Whether they exist and may be opened is for the core to judge: it
asks access(2), which opens nothing, and knows containers from hosts.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["paths"]

# The card node is for displays: programs that compute open none. KFD's /dev/kfd is one for all GPUs
# and in no index.
_PATHS = {"drm_render": "/dev/dri/renderD{}", "accel": "/dev/accel/accel{}", "mali": "/dev/mali{}"}


def paths(node_index: Mapping[str, int]) -> list[str]:
    """Return the nodes that a program opens to compute, of a sighting's ``node_index``."""
    return [path.format(node_index[label]) for label, path in _PATHS.items() if label in node_index]
