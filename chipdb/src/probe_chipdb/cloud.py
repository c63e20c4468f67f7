"""The types under which clouds rent accelerators: machines, TPU slices, NVIDIA's HGX boards."""

# Reads the machine types under which clouds rent accelerators: `p5.48xlarge`, `a3-highgpu-8g`.
#
# A type stands for the product of its accelerators, whatever their number. Types that rent a part
# of a card (AWS g6f, Google's g4-standard-24, Azure's NV6ads_A10_v5) are left out: they are shares.

_A100_40, _A100_80, _H100 = "a100 sxm4 40gb", "a100 sxm4 80gb", "h100 80gb hbm3"
_PRO_6000 = "rtx pro 6000 blackwell server edition"
# EC2's families by the tables of "Specifications for Amazon EC2 accelerated computing instances".
_AMAZON = {
    "p2": "tesla k80", "p3": "tesla v100 sxm2 16gb", "p3dn": "tesla v100 sxm2 32gb",
    "p4d": _A100_40, "p4de": _A100_80, "p5": _H100, "p5e": "h200", "p5en": "h200",
    "p6-b200": "b200", "p6-b300": "b300 sxm6 ac", "p6e-gb200": "gb200",
    "g3": "tesla m60", "g3s": "tesla m60", "g4dn": "tesla t4", "g4ad": "radeon pro v520",
    "g5": "a10g", "g5g": "t4g", "g6": "l4", "gr6": "l4", "g6e": "l40s",
    "g7": "rtx pro 4500 blackwell server edition", "g7e": _PRO_6000,
    "dl1": "gaudi", "dl2q": "cloud ai 100 standard",
}  # fmt: skip
# These families bear the name of their chip, and people write them without a size.
_NEURON = {
    "trn1": "trainium", "trn1n": "trainium", "trn2": "trainium2", "trn2u": "trainium2",
    "trn3": "trainium3", "inf1": "inferentia", "inf2": "inferentia2",
}  # fmt: skip
_RACKS = {"u-p6e-gb200x36": "gb200", "u-p6e-gb200x72": "gb200"}
# Compute Engine's accelerator-optimised machines; the number counts GPUs.
_GOOGLE = {
    "a2-highgpu": _A100_40, "a2-megagpu": _A100_40, "a2-ultragpu": _A100_80,
    "a3-highgpu": _H100, "a3-megagpu": _H100, "a3-edgegpu": _H100, "a3-ultragpu": "h200",
    "a4-highgpu": "b200", "a4x-highgpu": "gb200", "a4x-maxgpu": "gb300",
}  # fmt: skip
# G machines are numbered by CPUs; below 48 a G4 has a part of a card.
_GOOGLE_CPUS = {
    "g2-standard": ("l4", frozenset(("4", "8", "12", "16", "24", "32", "48", "96"))),
    "g4-standard": (_PRO_6000, frozenset(("48", "96", "192", "384"))),
}
# Azure's sizes, `#` for the count of CPUs.
_AZURE = {
    "nc#s-v2": "tesla p100 pcie 16gb", "nc#rs-v2": "tesla p100 pcie 16gb",
    "nc#s-v3": "tesla v100 pcie 16gb", "nc#rs-v3": "tesla v100 pcie 16gb",
    "nc#as-t4-v3": "tesla t4", "nc#ads-a100-v4": "a100 80gb pcie",
    "nc#ads-h100-v5": "h100 nvl", "nc#adis-h100-v5": "h100 nvl",
    "nd#rs-v2": "tesla v100 sxm2 32gb", "nd#asr-v4": _A100_40, "nd#amsr-a100-v4": _A100_80,
    "nd#isr-h100-v5": _H100, "nd#isr-h200-v5": "h200", "nd#isr-mi300x-v5": "instinct mi300x",
    "nd#isr-ndr-gb200-v6": "gb200", "nd#isr-gb300-v6": "gb300",
}  # fmt: skip
# Oracle's shapes, between "gpu" and the count. A100-v2 has 80 GB, GPU4 has 40.
_ORACLE = {
    "gpu.a100-v2": _A100_80, "gpu4": _A100_40, "gpu3": "tesla v100 sxm2 16gb", "gpu.a10": "a10",
    "gpu.l40s": "l40s", "gpu.h100": _H100, "gpu.h200": "h200", "gpu.b200": "b200",
    "gpu.b300": "b300 sxm6 ac", "gpu.gb200": "gb200", "gpu.gb300": "gb300",
    "gpu.mi300x": "instinct mi300x", "gpu.mi355x": "instinct mi355x",
}  # fmt: skip
# Hugging Face's flavours of Spaces, Jobs and endpoints, by the tables of its documentation.
_FLAVOURS = {
    "t4-small": "tesla t4", "t4-medium": "tesla t4", "l4x1": "l4", "l4x4": "l4",
    "l40sx1": "l40s", "l40sx4": "l40s", "l40sx8": "l40s", "a10g-small": "a10g",
    "a10g-large": "a10g", "a10g-largex2": "a10g", "a10g-largex4": "a10g",
    "a100-large": "a100 80gb", "a100x4": "a100 80gb", "a100x8": "a100 80gb",
    "h100x1": "h100 80gb", "h100x8": "h100 80gb", "h200x1": "h200", "h200x8": "h200",
}  # fmt: skip
_AZURE_WHOLE = {"nv36ads-a10-v5": "a10", "nv36adms-a10-v5": "a10", "nv72ads-a10-v5": "a10"}


def machine_product(key: str) -> str:
    """The name of the accelerator in a cloud's machine type; empty where the key is none.

    >>> machine_product("p5en.48xlarge"), machine_product("a3 megagpu 8g")
    ('h200', 'h100 80gb hbm3')
    >>> machine_product("standard_nd96isr_mi300x_v5"), machine_product("trn2")
    ('instinct mi300x', 'trainium2')
    >>> machine_product("m5.24xlarge"), machine_product("p5"), machine_product("g4 standard 24")
    ('', '', '')
    """
    text = key.replace("_", "-").replace(" ", "-").removeprefix("ml.")  # SageMaker's
    if text in _NEURON:
        return _NEURON[text]
    if text in _FLAVOURS:
        return _FLAVOURS[text]
    if "." in text:
        return _oracle(text) if text[1:4] == "m.g" else _amazon(text)
    if text.startswith("gpu-"):
        return _digital_ocean(text)
    if text[:1] not in ("a", "g", "n", "s", "u"):
        return ""  # most names
    return _google(text) or _azure(text.removeprefix("standard-")) or _RACKS.get(text, "")


def _oracle(text: str) -> str:
    """`BM.GPU.H100.8`, `VM.GPU.A10.1`, `BM.GPU4.8`."""
    kind, _, shape = text.partition(".")
    family, _, count = shape.rpartition(".")
    return _ORACLE.get(family, "") if kind in ("bm", "vm") and _is_number(count) else ""


def _digital_ocean(text: str) -> str:
    """`gpu-h100x8-640gb`: model, count, and the memory of all.

    The "x" of an MI300X is also the sign: `gpu-mi300x1-192gb`.
    """
    head, _, memory = text.removeprefix("gpu-").rpartition("-")
    model, _, count = head.rpartition("x")
    total = memory.removesuffix("gb")
    if total == memory or not (_is_number(count) and total.isdecimal() and len(total) <= 4):
        return ""
    devices = int(count)
    if not devices or int(total) % devices or "-" in model:
        return ""
    size = int(total) // devices
    return f"{model}{'x' * model.startswith('mi')} {size}gb"


def _amazon(text: str) -> str:
    family, _, size = text.partition(".")
    if not _is_size(size):
        return ""
    return _AMAZON.get(family, "") or _NEURON.get(family, "")


def _is_size(text: str) -> bool:
    """`xlarge`, `48xlarge`, `metal`, `metal-48xl`."""
    if text == "metal":
        return True
    number = text.removesuffix("xlarge")
    if number == text:
        number = text.removeprefix("metal-").removesuffix("xl")
        return len(number) == len(text) - 8 and _is_number(number)
    return not number or _is_number(number)


def _is_number(text: str) -> bool:
    return len(text) <= 3 and text.isascii() and text.isdecimal()


def _google(text: str) -> str:
    family, _, count = text.removesuffix("-metal").removesuffix("-nolssd").rpartition("-")
    if count.endswith("g"):
        return _GOOGLE.get(family, "") if _is_number(count[:-1]) else ""
    product, counts = _GOOGLE_CPUS.get(family, ("", frozenset[str]()))
    return product if count in counts else ""


def _azure(text: str) -> str:
    if text[:2] not in ("nc", "nd", "nv"):
        return ""
    size, _, version = text.partition("-")
    feature = size[2:].lstrip("0123456789")
    cpus = size[2 : len(size) - len(feature)]
    if not _is_number(cpus):
        return ""
    return _AZURE.get(f"{size[:2]}#{feature}-{version}", "") or _AZURE_WHOLE.get(text, "")


# Reads the types under which clouds rent accelerators: `tpu-v6e-8`, `v5p-16`, `trn2.48xlarge`.
#
# The number behind a TPU counts cores (v2 to v4, v5p) or chips (v5e, v6e); either way it is a count
# of devices, and the product is the same. Machines with GPUs are in `machine_types`.

# Google's version to the product's name; GKE's node labels write "v5-lite" for v5e.
_TPUS = {
    "v2": "tpu v2", "v3": "tpu v3", "v4": "tpu v4", "v5e": "tpu v5e", "v5litepod": "tpu v5e",
    "v5lite": "tpu v5e", "v5p": "tpu v5p", "v6e": "tpu v6e", "7x": "tpu7x", "v7x": "tpu7x",
}  # fmt: skip
# Google's machine types: ct5lp-hightpu-4t, ct6e-standard-8t, tpu7x-standard-4t.
_MACHINES = {
    "ct3": "v3", "ct3p": "v3", "ct4p": "v4", "ct5l": "v5e", "ct5lp": "v5e", "ct5p": "v5p",
    "ct6e": "v6e", "tpu7x": "7x",
}  # fmt: skip
_SLICES = ("podslice", "slice", "device", "pod")


def cloud_product(key: str) -> str:
    """The product's name of a cloud type, as the data has it; empty where the key is none.

    >>> cloud_product("tpu v6e 8"), cloud_product("v5p 16"), cloud_product("trn2.48xlarge")
    ('tpu v6e', 'tpu v5p', 'trainium2')
    >>> cloud_product("ct6e-standard-8t"), cloud_product("v100 16"), cloud_product("v4")
    ('tpu v6e', '', '')
    """
    if product := machine_product(key):
        return product
    tokens = key.replace("-", " ").split()
    if tokens[:1] == ["google"]:
        del tokens[0]
    return _machine(tokens) or _tpu(tokens)


def _machine(tokens: list[str]) -> str:
    """`ct6e standard 8t`: the family, its shape, and how many chips."""
    if len(tokens) != 3 or tokens[1] not in ("hightpu", "standard"):
        return ""
    count = tokens[2].removesuffix("t")
    counted = count != tokens[2] and len(count) <= 3 and count.isdecimal()
    return _TPUS.get(_MACHINES.get(tokens[0], ""), "") if counted else ""


def module_of(key: str) -> str:
    """The module on a board of NVIDIA's HGX, as the list of confidential computing writes it.

    A baseboard carries SXM modules; how many, and how the rack is cooled, is not what they are.

    >>> module_of("nvidia hgx h100 4 gpu 64gb hbm2e (partner cooled)")
    'nvidia sxm h100 64gb hbm2e'
    """
    if "hgx " not in key:
        return key
    tokens = key.replace(",", " ").replace("(", " ").replace(")", " ").split()
    for at, token in enumerate(tokens[:-1]):
        if token.isdecimal() and len(token) == 1 and tokens[at + 1] == "gpu":
            del tokens[at : at + 2]
            break
    kept = [token for token in tokens if token not in _COOLING]
    module = "" if any(token.startswith("sxm") for token in kept) else "sxm"
    named = (module if token == "hgx" else token for token in kept)
    return " ".join(filter(None, named))


_COOLING = ("air", "partner", "liquid", "cooled", "ac", "lc")


def _tpu(tokens: list[str]) -> str:
    named = tokens[:1] in (["tpu"], ["tpu7x"])
    if tokens[:1] == ["tpu"]:
        del tokens[0]
    elif named:
        tokens = ["7x", *tokens[1:]]
    if tokens[1:2] == ["lite"]:
        tokens = [tokens[0] + "lite", *tokens[2:]]
    counted = len(tokens) == 2 and len(tokens[1]) <= 5 and tokens[1].isdecimal()
    sliced = len(tokens) == 2 and tokens[1] in _SLICES
    if not tokens or len(tokens) > 2 or (len(tokens) == 2 and not (counted or (sliced and named))):
        return ""
    return _TPUS.get(tokens[0], "") if named or counted else ""
