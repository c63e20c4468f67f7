"""The types under which clouds rent accelerators: machines, TPU slices, NVIDIA's HGX boards.

A type stands for the product of its accelerators, whatever their number. `data/names` says which
product, `data/rules/machine.toml` how each cloud writes family and number. Types that rent a part
of a card (AWS g6f, Google's g4-standard-24, Azure's NV6ads_A10_v5) are left out: they are shares.
"""

from probe_chipdb.rules import built

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_chipdb.rules import Rules


def machine_keys(key: str, rules: "Rules | None" = None) -> "Iterator[str]":
    """The names of `data/names` that a normalised name may stand for, as the index has them.

    >>> list(machine_keys("p5en.48xlarge"))
    ['s:machine/p5en.48xlarge', 's:amazon/p5en']
    >>> list(machine_keys("standard_nd96isr_mi300x_v5"))[1:]
    ['s:azure/nd#isr-mi300x-v5']
    >>> list(machine_keys("tpu v6e 8"))[1:], list(machine_keys("v100 16"))[1:]
    (['s:tpu/v6e'], ['s:tpu/v100'])
    """
    text = key.replace("_", "-").replace(" ", "-").removeprefix("ml.")  # SageMaker's
    text = text.removeprefix("standard-")  # Azure's
    yield f"s:machine/{text}"
    for name in (rules or built()).every(text, "machine"):
        yield f"s:{name}"


def _is_number(text: str) -> bool:
    return len(text) <= 3 and text.isascii() and text.isdecimal()


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
