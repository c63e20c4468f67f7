"""How many accelerators the cloud's type of this machine has: a hint, where nobody says more.

The type is read from files alone: AWS writes it into DMI on Nitro, and cloud-init keeps AWS's and
Azure's. GCP's, OCI's, Lambda's and CoreWeave's stand in no file that we know: there a person may
name the type as the expectation. A type that is not in the table says nothing.
"""

from __future__ import annotations

from probe_core.doctor.causes import of_cause
from probe_core.doctor.check import REPORT, check, failed, not_applicable, passed, unknown
from probe_core.model.ids import ACCELERATORS
from probe_core.model.machine_types import of_type
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.doctor.check import Request, ResultDoc
    from probe_core.machine import Machine
    from probe_core.model.document import Json

_DMI, _BUS = "/sys/class/dmi/id", "/sys/bus/pci/devices"
_CLOUD_INIT = "/run/cloud-init/instance-data.json"
"""World-readable, without secrets (cloud-init, "Instance metadata")."""

_PATHS = (("ds", "meta_data", "imds", "compute", "vmSize"), ("ds", "meta_data", "instance-type"))
"""Where Azure's and AWS's types stand there; AWS's machines on Xen, as p3, have it nowhere else."""


def machine_type(machine: Machine) -> str | None:
    """Return the type by which the cloud calls this machine; None where no file says it."""
    if machine.read(f"{_DMI}/sys_vendor", 64) == "Amazon EC2":
        return machine.read(f"{_DMI}/product_name", 64)
    text = machine.read(_CLOUD_INIT, 1 << 20)
    if not text or not any(path[-1] in text for path in _PATHS):
        return None
    from probe_core.jsontext import parse

    try:
        document = parse(text)
    except (ValueError, RecursionError):
        return None
    return next((type_ for path in _PATHS if (type_ := _at(document, path)) is not None), None)


def _at(value: Json, path: Sequence[str]) -> str | None:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


@check(
    "fewer-than-type",
    step="hardware",
    needs=(REPORT, _BUS, f"{_DMI}/sys_vendor", f"{_DMI}/product_name", _CLOUD_INIT),
)
def fewer_than_type(request: Request) -> ResultDoc:
    """Whether the machine has fewer accelerators than its type in the cloud."""
    if request.report.get("expected") is not None:
        return not_applicable("a setting or a baseline says what should be here")
    type_ = machine_type(request.machine)
    if type_ is None:
        return not_applicable("no file says that this is a machine of a cloud, and of which type")
    row = of_type(type_)
    if row is None:
        return not_applicable(f"nothing is known of the type {clean_text(type_, 60)}")
    here = [
        device
        for device in request.report["devices"]
        if device["kind"] in ACCELERATORS
        and device["parent"] is None
        and device["vendor"] in (row.vendor, None)
    ]
    if len(here) >= row.number:
        return passed()
    if not request.machine.listdir(_BUS):
        return unknown("no PCI bus is shown here, as in some containers")
    found = f"{type_}: {row.number} {row.name}; here: {len(here)}"
    return failed(of_cause(request, "fewer-than-type", found))


CHECKS = [fewer_than_type]
