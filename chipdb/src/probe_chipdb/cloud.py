"""Reads the types under which clouds rent accelerators: `tpu-v6e-8`, `v5p-16`, `trn2.48xlarge`.

The number behind a TPU counts cores (v2 to v4, v5p) or chips (v5e, v6e); either way it is a count
of devices, and the product is the same. Machines with GPUs are in `machine_types`.
"""

from probe_chipdb.machine_types import machine_product

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
