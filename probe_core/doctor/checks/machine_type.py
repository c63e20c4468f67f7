"""How many accelerators the cloud's type of this machine has: a hint, where nobody says more.

The type is read from files alone: AWS writes it into DMI on Nitro, cloud-init keeps Azure's. GCP's
and OCI's stand in no file. A type that is not in the table says nothing.
"""

from __future__ import annotations

from probe_core.doctor.causes import of_cause
from probe_core.doctor.check import REPORT, check, failed, not_applicable, passed, unknown
from probe_core.model.ids import ACCELERATORS, pci_vendor
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.doctor.check import Request, ResultDoc
    from probe_core.machine import Machine

__all__ = ["CHECKS", "TYPES", "machine_type"]

_DMI, _BUS = "/sys/class/dmi/id", "/sys/bus/pci/devices"
_CLOUD_INIT = "/run/cloud-init/instance-data.json"
"""World-readable, without secrets (cloud-init, "Instance metadata")."""

_NVIDIA, _AMD, _AWS = "10de", "1002", "1d0f"


_G5 = "xlarge=1 2xlarge=1 4xlarge=1 8xlarge=1 16xlarge=1 12xlarge=4 24xlarge=4 48xlarge=8"

# Beginning of the type, (rest=count …), name, PCI vendor. Sources, read in August 2026: the table
# of Amazon's EKS node agent, made of DescribeInstanceTypes (aws/eks-node-monitoring-agent,
# instance-info.jsonl); AWS's Neuron pages for Inferentia and Trainium; Azure's pages of sizes.
# Types with a part of a card are left out: how many devices they show is the driver's matter.
_FAMILIES = (
    ("p3dn.", "24xlarge=8", "V100", _NVIDIA),
    ("p4d.", "24xlarge=8", "A100", _NVIDIA),
    ("p4de.", "24xlarge=8", "A100", _NVIDIA),
    ("p5.", "4xlarge=1 48xlarge=8", "H100", _NVIDIA),
    ("p5e.", "48xlarge=8", "H200", _NVIDIA),
    ("p5en.", "48xlarge=8", "H200", _NVIDIA),
    ("p6-b200.", "48xlarge=8", "B200", _NVIDIA),
    ("p6-b300.", "48xlarge=8", "B300", _NVIDIA),
    ("p6e-gb200.", "36xlarge=4", "GB200", _NVIDIA),
    ("g4dn.", "xlarge=1 2xlarge=1 4xlarge=1 8xlarge=1 16xlarge=1", "T4", _NVIDIA),
    ("g4dn.", "12xlarge=4 metal=8", "T4", _NVIDIA),
    ("g5.", _G5, "A10G", _NVIDIA),
    ("g6.", _G5, "L4", _NVIDIA),
    ("g6e.", _G5, "L40S", _NVIDIA),
    ("gr6.", "4xlarge=1 8xlarge=1", "L4", _NVIDIA),
    ("g7e.", "2xlarge=1 4xlarge=1 8xlarge=1 12xlarge=2", "RTX PRO 6000", _NVIDIA),
    ("g7e.", "24xlarge=4 48xlarge=8", "RTX PRO 6000", _NVIDIA),
    ("g5g.", "xlarge=1 2xlarge=1 4xlarge=1 8xlarge=1 16xlarge=2 metal=2", "T4G", _NVIDIA),
    ("inf1.", "xlarge=1 2xlarge=1 6xlarge=4 24xlarge=16", "Inferentia", _AWS),
    ("inf2.", "xlarge=1 8xlarge=1 24xlarge=6 48xlarge=12", "Inferentia2", _AWS),
    ("trn1.", "2xlarge=1 32xlarge=16", "Trainium", _AWS),
    ("trn2.", "48xlarge=16", "Trainium2", _AWS),
    ("Standard_", "ND96asr_v4=8 ND96amsr_A100_v4=8", "A100", _NVIDIA),
    ("Standard_", "ND96isr_H100_v5=8 NC40ads_H100_v5=1 NC80adis_H100_v5=2", "H100", _NVIDIA),
    ("Standard_", "ND96isr_H200_v5=8", "H200", _NVIDIA),
    ("Standard_", "ND96isr_MI300X_v5=8", "MI300X", _AMD),
    ("Standard_", "ND128isr_GB200_v6=4", "GB200", _NVIDIA),
    ("Standard_", "NC24ads_A100_v4=1 NC48ads_A100_v4=2 NC96ads_A100_v4=4", "A100", _NVIDIA),
    ("Standard_", "NC64as_T4_v3=4", "T4", _NVIDIA),
    ("Standard_", "NV72ads_A10_v5=2", "A10", _NVIDIA),
)

TYPES: Mapping[str, tuple[int, str, str]] = {
    f"{family}{size}": (int(count), name, vendor)
    for family, sizes, name, vendor in _FAMILIES
    for size, _, count in (entry.partition("=") for entry in sizes.split())
}
"""Type of a cloud's machine to how many accelerators it has, their name and PCI vendor."""


def machine_type(machine: Machine) -> str | None:
    """Return the type by which the cloud calls this machine; None where no file says it."""
    if machine.read(f"{_DMI}/sys_vendor", 64) == "Amazon EC2":
        return machine.read(f"{_DMI}/product_name", 64)
    text = machine.read(_CLOUD_INIT, 1 << 20)
    if not text or "vmSize" not in text:
        return None
    from probe_core.jsontext import parse

    try:
        value = parse(text)
    except (ValueError, RecursionError):
        return None
    for name in ("ds", "meta_data", "imds", "compute", "vmSize"):
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
    row = TYPES.get(type_)
    if row is None:
        return not_applicable(f"nothing is known of the type {clean_text(type_, 60)}")
    count, name, vendor = row
    whole = [
        device
        for device in request.report["devices"]
        if device["kind"] in ACCELERATORS and device["parent"] is None
    ]
    here = [device for device in whole if pci_vendor(device) in (vendor, None)]
    if len(here) >= count:
        return passed()
    if not request.machine.listdir(_BUS):
        return unknown("no PCI bus is shown here, as in some containers")
    found = f"{type_}: {count} {name}; here: {len(here)}"
    return failed(of_cause(request, "fewer-than-type", found))


CHECKS = [fewer_than_type]
