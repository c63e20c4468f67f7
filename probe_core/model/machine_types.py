"""Which accelerators a cloud's type of machine has: rows of types, each group with its source.

A type that is not here says nothing. Types with a part of a card are left out: how many devices
those show is the driver's matter.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class MachineType(NamedTuple):
    """What a machine of a type has: `number` accelerators called `name`, by `source`."""

    number: int
    name: str
    source: str

    @property
    def vendor(self) -> str:
        """The vendor's word, as devices have it."""
        return next((word for start, word in _VENDORS if self.name.startswith(start)), "nvidia")


_VENDORS = (("MI", "amd"), ("Inferentia", "amazon"), ("Trainium", "amazon"), ("TPU", "google"))

_EKS = (
    "table of Amazon's EKS node agent, made of DescribeInstanceTypes"
    " (aws/eks-node-monitoring-agent, instance-info.jsonl), 2026-08-18"
)
_NEURON = "AWS Neuron, pages of Inferentia and Trainium instances, August 2026"
_SKYPILOT = "SkyPilot's catalogue of AWS (skypilot-org/skypilot-catalog), November 2026"
_AZURE = "Azure, pages of sizes of virtual machines, August 2026"
_GCP = "Google Cloud, pages of machine families of GPUs and TPUs, August 2026"
_OCI = "SkyPilot's catalogue of OCI shapes (skypilot-org/skypilot-catalog), November 2026"
_LAMBDA = "form of Lambda's names in SkyPilot's catalogue, November 2026"
_COREWEAVE = (
    "form of CoreWeave's names, as public node pools have them (gd-8xh100ib-i128, gb200-4x),"
    " November 2026"
)

_G5 = "xlarge=1 2xlarge=1 4xlarge=1 8xlarge=1 16xlarge=1 12xlarge=4 24xlarge=4 48xlarge=8"

# Beginning of the type, (rest=count …), name of the accelerator, source.
_FAMILIES = (
    ("p3.", "2xlarge=1 8xlarge=4 16xlarge=8", "V100", _SKYPILOT),
    ("p3dn.", "24xlarge=8", "V100", _EKS),
    ("p4d.", "24xlarge=8", "A100", _EKS),
    ("p4de.", "24xlarge=8", "A100", _EKS),
    ("p5.", "4xlarge=1 48xlarge=8", "H100", _EKS),
    ("p5e.", "48xlarge=8", "H200", _EKS),
    ("p5en.", "48xlarge=8", "H200", _EKS),
    ("p6-b200.", "48xlarge=8", "B200", _EKS),
    ("p6-b300.", "48xlarge=8", "B300", _EKS),
    ("p6e-gb200.", "36xlarge=4", "GB200", _EKS),
    ("g4dn.", "xlarge=1 2xlarge=1 4xlarge=1 8xlarge=1 16xlarge=1", "T4", _EKS),
    ("g4dn.", "12xlarge=4 metal=8", "T4", _EKS),
    ("g5.", _G5, "A10G", _EKS),
    ("g6.", _G5, "L4", _EKS),
    ("g6e.", _G5, "L40S", _EKS),
    ("gr6.", "4xlarge=1 8xlarge=1", "L4", _EKS),
    ("g7e.", "2xlarge=1 4xlarge=1 8xlarge=1 12xlarge=2", "RTX PRO 6000", _EKS),
    ("g7e.", "24xlarge=4 48xlarge=8", "RTX PRO 6000", _EKS),
    ("g5g.", "xlarge=1 2xlarge=1 4xlarge=1 8xlarge=1 16xlarge=2 metal=2", "T4G", _EKS),
    ("inf1.", "xlarge=1 2xlarge=1 6xlarge=4 24xlarge=16", "Inferentia", _NEURON),
    ("inf2.", "xlarge=1 8xlarge=1 24xlarge=6 48xlarge=12", "Inferentia2", _NEURON),
    ("trn1.", "2xlarge=1 32xlarge=16", "Trainium", _NEURON),
    ("trn2.", "48xlarge=16", "Trainium2", _NEURON),
    ("Standard_", "ND96asr_v4=8 ND96amsr_A100_v4=8", "A100", _AZURE),
    ("Standard_", "ND96isr_H100_v5=8 NC40ads_H100_v5=1 NC80adis_H100_v5=2", "H100", _AZURE),
    ("Standard_", "ND96isr_H200_v5=8", "H200", _AZURE),
    ("Standard_", "ND96isr_MI300X_v5=8", "MI300X", _AZURE),
    ("Standard_", "ND128isr_GB200_v6=4", "GB200", _AZURE),
    ("Standard_", "NC24ads_A100_v4=1 NC48ads_A100_v4=2 NC96ads_A100_v4=4", "A100", _AZURE),
    ("Standard_", "NC4as_T4_v3=1 NC8as_T4_v3=1 NC16as_T4_v3=1 NC64as_T4_v3=4", "T4", _AZURE),
    ("Standard_", "NV36ads_A10_v5=1 NV72ads_A10_v5=2", "A10", _AZURE),
    ("a2-", "highgpu-1g=1 highgpu-2g=2 highgpu-4g=4 highgpu-8g=8 megagpu-16g=16", "A100", _GCP),
    ("a2-", "ultragpu-1g=1 ultragpu-2g=2 ultragpu-4g=4 ultragpu-8g=8", "A100", _GCP),
    ("a3-", "highgpu-1g=1 highgpu-2g=2 highgpu-4g=4 highgpu-8g=8", "H100", _GCP),
    ("a3-", "megagpu-8g=8 edgegpu-8g=8", "H100", _GCP),
    ("a3-", "ultragpu-8g=8", "H200", _GCP),
    ("a4-", "highgpu-8g=8", "B200", _GCP),
    ("a4x-", "highgpu-4g=4", "GB200", _GCP),
    ("g2-", "standard-24=2 standard-48=4 standard-96=8", "L4", _GCP),
    ("g4-", "standard-48=1 standard-96=2 standard-192=4 standard-384=8", "RTX PRO 6000", _GCP),
    ("ct5lp-", "hightpu-1t=1 hightpu-4t=4 hightpu-8t=8", "TPU v5e", _GCP),
    ("ct5p-", "hightpu-1t=1 hightpu-2t=2 hightpu-4t=4", "TPU v5p", _GCP),
    ("ct6e-", "standard-1t=1 standard-4t=4 standard-8t=8", "TPU v6e", _GCP),
    ("BM.GPU", "2.2=2", "P100", _OCI),
    ("VM.GPU", "2.1=1", "P100", _OCI),
    ("BM.GPU", "3.8=8", "V100", _OCI),
    ("VM.GPU", "3.1=1 3.2=2 3.4=4", "V100", _OCI),
    ("BM.GPU", "4.8=8 .A100-v2.8=8", "A100", _OCI),
    ("BM.GPU", ".A10.4=4", "A10", _OCI),
    ("VM.GPU", ".A10.1=1 .A10.2=2", "A10", _OCI),
    ("BM.GPU", ".L40S.4=4", "L40S", _OCI),
    ("BM.GPU", ".H100.8=8", "H100", _OCI),
    ("BM.GPU", ".H200.8=8", "H200", _OCI),
    ("BM.GPU", ".B200.8=8", "B200", _OCI),
    ("BM.GPU", ".B300.8=8", "B300", _OCI),
    ("BM.GPU", ".GB200.4=4", "GB200", _OCI),
    ("BM.GPU", ".GB300.4=4", "GB300", _OCI),
    ("BM.GPU", ".MI300X.8=8", "MI300X", _OCI),
    ("BM.GPU", ".MI355X.8=8", "MI355X", _OCI),
    ("BM.GPU", ".RTXPRO.8=8", "RTX PRO 6000", _OCI),
)

# Names that hold the count and the accelerator.
_FORMS = (
    (r"gpu_(?P<number>\d{1,2})x_(?P<name>a10|a100|a6000|b200|gh200|h100|v100)(?:_.*)?", _LAMBDA),
    (r"gd-(?P<number>\d{1,2})x(?P<name>a100|h100|h200|l40s|l40)(?:ib)?(?:-.*)?", _COREWEAVE),
    (r"(?P<name>b200|gb200)-(?P<number>\d{1,2})x", _COREWEAVE),
)


def known_types() -> Iterator[tuple[str, MachineType]]:
    """Yield each type that is a row, with what it has."""
    for family, sizes, name, source in _FAMILIES:
        for size, _, count in (entry.partition("=") for entry in sizes.split()):
            yield f"{family}{size}", MachineType(int(count), name, source)


def of_type(text: str) -> MachineType | None:
    """Return what a machine of a type has; None of a type that nobody here knows."""
    wanted = text.strip().lower()
    for name, own in known_types():
        if name.lower() == wanted:
            return own
    for form, source in _FORMS:
        match = re.fullmatch(form, wanted)
        if match and int(match["number"]):
            return MachineType(int(match["number"]), match["name"].upper(), source)
    return None
