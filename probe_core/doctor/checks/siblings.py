"""Equal devices compared: the one that has less than the others, and NVLinks that are down."""

from __future__ import annotations

from probe_core.doctor.causes import fixed, of_cause
from probe_core.doctor.check import REPORT, check, failed, not_applicable, passed
from probe_core.model.fix import filled, run
from probe_core.model.ids import ACCELERATORS, pci_address
from probe_core.readiness.siblings import differences, lone_links, nvlinks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import CheckFindingDoc, Request, ResultDoc
    from probe_core.model.fix import Fix
    from probe_core.readiness.siblings import Difference


@check("unlike-siblings", step="hardware", needs=(REPORT,))
def siblings(request: Request) -> ResultDoc:
    """Whether a device has less than most of its equals."""
    devices = request.report["devices"]
    if sum(device["kind"] in ACCELERATORS for device in devices) < 3:
        return not_applicable("fewer than three accelerators are here to compare")
    found = [_finding(request, difference) for difference in differences(devices)]
    return failed(*found) if found else passed()


def _finding(request: Request, difference: Difference) -> CheckFindingDoc:
    evidence, device = difference.sentence, difference.device
    result = of_cause(request, "unlike-siblings", evidence, [device])
    fixed(result, _fix(difference), request)
    return result


# nvidia-smi(1), which takes a PCI address for -i.
_BY_NVIDIA = {
    "power limit": (run("sudo nvidia-smi -i {address} -pl {norm}"),),
    "ECC": (
        run("sudo nvidia-smi -i {address} -e 1"),
        ", then reset the GPU when it is idle, or reboot",
    ),
}
_BY_FACT = {
    "NVLinks active": "reset the device when it is idle, then check its bridge or baseboard",
    "PCIe generation": "set it in the firmware setup as for its siblings; check riser and cable",
    "PCIe": "check slot, riser and bifurcation against those of its siblings",
    "memory": "compare ECC, partitions and firmware with those of a sibling",
    "power limit": "set the power limit of its siblings",
    # NVIDIA, "GPU Memory Error Management": replaced rows are no fault while spare ones are there.
    "replaced memory rows": "watch its memory errors; have the card replaced when rows run out",
    "ECC": "switch ECC on as its siblings have it",
}


def _fix(difference: Difference) -> Fix:
    name, device = difference.fact.name, difference.device
    address = pci_address(device)
    if device["vendor"] == "nvidia" and address and name in _BY_NVIDIA:
        names = {"address": address, "norm": f"{difference.norm:g}"}
        return filled(_BY_NVIDIA[name], names)
    return _BY_FACT.get(name, "compare firmware and settings with those of a sibling")


@check("nvlink-inactive", step="hardware", needs=(REPORT,))
def links(request: Request) -> ResultDoc:
    """Whether a part of a GPU's NVLinks is down, where no siblings tell what is meant."""
    devices = request.report["devices"]
    if not any(nvlinks(device) for device in devices):
        return not_applicable("no NVLink of a GPU was read")
    found = [
        of_cause(request, "nvlink-inactive", f"{active} of {count} NVLinks are active", [device])
        for device, active, count in lone_links(devices)
    ]
    return failed(*found) if found else passed()


CHECKS = [siblings, links]
