"""The types under which clouds rent accelerators: machines, TPU slices, NVIDIA's HGX boards.

A type stands for the product of its accelerators, whatever their number. `data/names` says which
product; how each cloud writes family and number is here. Types that rent a part of a card (AWS g6f,
Google's g4-standard-24, Azure's NV6ads_A10_v5) are left out: they are shares.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SLICES = ("podslice", "slice", "device", "pod")


def machine_keys(key: str) -> "Iterator[str]":
    """The names of `data/names` that a normalised name may stand for, as the index has them.

    >>> list(machine_keys("p5en.48xlarge"))
    ['s:machine/p5en.48xlarge', 's:amazon/p5en']
    >>> list(machine_keys("standard_nd96isr_mi300x_v5"))[1:]
    ['s:azure/nd#isr-mi300x-v5']
    >>> list(machine_keys("tpu v6e 8"))[1:], list(machine_keys("v100 16"))[1:]
    (['s:tpu/v6e'], ['s:tpu/v100'])
    """
    text = key.replace("_", "-").replace(" ", "-").removeprefix("ml.")  # SageMaker's
    yield f"s:machine/{text.removeprefix('standard-')}"
    if "." in text:
        yield from _oracle(text) if text[1:4] == "m.g" else _amazon(text)
    elif text[:1] == "a":
        yield from _google(text)
    elif text.removeprefix("standard-")[:2] in ("nc", "nd"):
        yield from _azure(text.removeprefix("standard-"))
    tokens = key.replace("-", " ").split()
    if tokens[:1] == ["google"]:
        del tokens[0]
    yield from _tpu_machine(tokens)
    yield from _tpu(tokens)


def _oracle(text: str) -> "Iterator[str]":
    """`BM.GPU.H100.8`, `VM.GPU.A10.1`, `BM.GPU4.8`, some with a version: `BM.GPU.MI355X-v0.8`."""
    kind, _, shape = text.partition(".")
    family, _, count = shape.rpartition(".")
    if kind in ("bm", "vm") and _is_number(count):
        yield f"s:oracle/{family}"
        plain, _, version = family.rpartition("-v")
        if plain and _is_number(version):
            yield f"s:oracle/{plain}"


def _amazon(text: str) -> "Iterator[str]":
    family, _, size = text.partition(".")
    if _is_size(size):
        yield f"s:amazon/{family}"


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


def _google(text: str) -> "Iterator[str]":
    family, _, count = text.removesuffix("-metal").removesuffix("-nolssd").rpartition("-")
    if count.endswith("g") and _is_number(count[:-1]):
        yield f"s:google/{family}"


def _azure(text: str) -> "Iterator[str]":
    size, _, version = text.partition("-")
    feature = size[2:].lstrip("0123456789")
    if _is_number(size[2 : len(size) - len(feature)]):
        yield f"s:azure/{size[:2]}#{feature}-{version}"


def _tpu_machine(tokens: list[str]) -> "Iterator[str]":
    """`ct6e standard 8t`: the family, its shape, and how many chips."""
    if len(tokens) != 3 or tokens[1] not in ("hightpu", "standard"):
        return
    count = tokens[2].removesuffix("t")
    if count != tokens[2] and len(count) <= 3 and count.isdecimal():
        yield f"s:tpu-machine/{tokens[0]}"


def _tpu(tokens: list[str]) -> "Iterator[str]":
    """`tpu v5 lite podslice`, `v6e 256`: a count of cores (v2 to v4, v5p) or chips (v5e, v6e)."""
    named = tokens[:1] in (["tpu"], ["tpu7x"])
    if tokens[:1] == ["tpu"]:
        del tokens[0]
    elif named:
        tokens = ["7x", *tokens[1:]]
    if tokens[1:2] == ["lite"]:
        tokens = [tokens[0] + "lite", *tokens[2:]]
    counted = len(tokens) == 2 and len(tokens[1]) <= 5 and tokens[1].isdecimal()
    sliced = len(tokens) == 2 and tokens[1] in _SLICES
    if counted or (named and (len(tokens) == 1 or sliced)):
        yield f"s:tpu/{tokens[0]}"


def droplet_product(key: str) -> str:
    """`gpu-h100x8-640gb` of DigitalOcean: model, count, and the memory of all; else empty.

    The "x" of an MI300X is also the sign: `gpu-mi300x1-192gb`.

    >>> droplet_product("gpu h100x8 640gb"), droplet_product("gpu-mi300x1-192gb")
    ('h100 80gb', 'mi300x 192gb')
    """
    text = key.replace("_", "-").replace(" ", "-").removeprefix("ml.")
    if not text.startswith("gpu-") or "." in text:
        return ""
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
