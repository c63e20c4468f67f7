"""Answers for machines: NFD's image-compatibility document, a node affinity, a label.

What these formats cannot say, their texts say. NFD knows PCI devices and kernel modules, and no
driver's version (node-feature-discovery, api/image-compatibility/v1alpha1). The labels of NVIDIA's
gpu-feature-discovery (``nvidia.com/…``) are recalled from its README.
"""

from __future__ import annotations

from probe_wheels.images.least import (
    capabilities_of_image,
    processors_of_image,
    vendors_of_image,
)
from probe_wheels.rules import dotted, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_wheels.images.contents import Contents

LABEL = "probe-will-run"
MAX_LABEL = 63
"""Characters of a label's value in Kubernetes."""
_GOARCH = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "armv7l": "arm"}
_CLASSES = ["0300", "0302", "0380"]
_VENDOR_IDS = {"nvidia": "10de", "amd": "1002", "intel": "8086"}
_MODULES = {"nvidia": ["nvidia"], "amd": ["amdgpu"], "intel": ["i915", "xe"]}

Value = object


def compatibility(contents: Contents) -> dict[str, Value]:
    """Return NFD's document: one set of rules for each vendor that the image runs on."""
    found: list[Value] = []
    for vendor in vendors_of_image(contents):
        devices, text = _devices(contents, vendor)
        expressions: dict[str, Value] = {
            "vendor": {"op": "In", "value": [_VENDOR_IDS[vendor]]},
            "class": {"op": "In", "value": _CLASSES},
        }
        if devices:
            expressions["device"] = {"op": "In", "value": devices}
        rules = [
            {
                "name": f"{vendor} gpu, driver {module}",
                "matchFeatures": [
                    {"feature": "pci.device", "matchExpressions": expressions},
                    {
                        "feature": "kernel.loadedmodule",
                        "matchExpressions": {module: {"op": "Exists"}},
                    },
                ],
            }
            for module in _MODULES[vendor]
        ]
        found += [{"rules": [rule], "tag": vendor, "description": text} for rule in rules]
    return {"version": "v1alpha1", "compatibilities": found}


def _devices(contents: Contents, vendor: str) -> tuple[list[str], str]:
    """Return the PCI devices that an image has code for, and what NFD cannot check."""
    arch = "-".join(filter(None, (contents.arch or "unknown", contents.image.config.variant)))
    text = f"not checked by NFD: the architecture ({arch})"
    if vendor == "nvidia":
        capabilities = capabilities_of_image(contents)
        least = {dotted(driver) for driver in capabilities.values()}
        if least:
            text += f", NVIDIA's driver ({' or '.join(sorted(least, key=version_of))} or newer)"
        names = {f"{major}.{minor}" for major, minor in capabilities}
        return _pci_ids("nvidia", "compute_capability", names), text
    if vendor == "amd":
        return _pci_ids("amd", "gfx", set(processors_of_image(contents))), text + ", ROCm's driver"
    return [], text + ", which chips its code is for"


def _pci_ids(vendor: str, column: str, names: set[str]) -> list[str]:
    """Return the PCI device ids of all chips whose architecture has one of these values alone."""
    import probe_chipdb

    database = probe_chipdb.load(packages=False)
    ids: set[str] = set()
    for chip in database.chips():
        arch = database.arch(chip.arch) if chip.vendor == vendor and chip.arch else None
        values = arch.column(column).split("|") if arch and arch.column(column) else []
        if values and set(values) <= names:
            ids.update(text.partition(":")[2].partition("/")[0] for text in chip.pci)
    return sorted(ids)


def affinity(contents: Contents) -> dict[str, Value]:
    """Return a node affinity of Kubernetes: terms are alternatives, their expressions all hold."""
    arch = _GOARCH.get(contents.arch or "", contents.arch or "")
    base = [_expression("kubernetes.io/arch", "In", [arch])] if arch else []
    terms: list[Value] = [{"matchExpressions": [*base, *own]} for own in _terms(contents)]
    if not terms and base:
        terms = [{"matchExpressions": base}]
    required = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _terms(contents: Contents) -> Iterator[list[Value]]:
    """Yield the expressions for each major compute capability, and for each other vendor."""
    capabilities = capabilities_of_image(contents)
    for major in sorted({capability[0] for capability in capabilities}):
        minors = sorted(minor for other, minor in capabilities if other == major)
        least = min(driver for (m, _), driver in capabilities.items() if m == major)
        yield [
            _expression("nvidia.com/gpu.compute.major", "In", [str(major)]),
            _expression("nvidia.com/gpu.compute.minor", "In", [str(minor) for minor in minors]),
            _expression("nvidia.com/cuda.driver.major", "Gt", [str(least[0] - 1)]),
        ]
    for vendor in vendors_of_image(contents):
        if vendor != "nvidia":
            for class_ in _CLASSES:
                name = f"feature.node.kubernetes.io/pci-{class_}_{_VENDOR_IDS[vendor]}.present"
                yield [_expression(name, "In", ["true"])]


def _expression(key: str, operator: str, values: list[str]) -> dict[str, Value]:
    return {"key": key, "operator": operator, "values": values}


def label(contents: Contents) -> str:
    """Return a label ``probe-will-run=sm80.90_d525_0123456789ab``: targets, driver, and digest.

    The digest is in it because tags move; of very many targets there is no more than "many".
    """
    digest = contents.image.digest.partition(":")[2] or "undigested"
    capabilities = capabilities_of_image(contents)
    least = min(capabilities.values(), default=())
    text = ".".join(vendors_of_image(contents)) or "cpu"
    if capabilities:
        text = "sm" + ".".join(f"{major}{minor}" for major, minor in capabilities)
    elif processors := processors_of_image(contents):
        text = "gfx" + ".".join(name.removeprefix("gfx") for name in processors)
    driver = f"_d{least[0]}" if least else ""
    for targets, length in ((text, 12), (text, 8), (text[:2] + "-many", 12)):
        value = f"{targets}{driver}_{digest[:length]}"
        if len(value) <= MAX_LABEL:
            break
    return f"{LABEL}={value}"


def yaml(value: Value, indent: str = "") -> Iterator[str]:
    """Yield the lines of plain data as YAML; texts are quoted as JSON's, which YAML reads."""
    from probe_core.commands import write_json

    if isinstance(value, dict):
        for key, item in value.items():
            yield from _yaml_item(f"{indent}{key}:", item, indent + "  ")
    elif isinstance(value, list):
        for item in value:
            lines = list(yaml(item, indent + "  "))
            yield f"{indent}- {lines[0].strip()}"
            yield from lines[1:]
    else:
        yield indent + write_json(value)


def _yaml_item(head: str, item: Value, indent: str) -> Iterator[str]:
    nested = isinstance(item, (dict, list)) and bool(item)
    simple = isinstance(item, list) and all(isinstance(part, str) for part in item)
    if nested and not simple:
        yield head
        yield from yaml(item, indent)
    else:
        from probe_core.commands import write_json

        yield f"{head} {write_json(item)}"
