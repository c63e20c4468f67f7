"""Reads the types under which clouds rent accelerators: `tpu-v6e-8`, `v5p-16`, `trn2.48xlarge`.

The number behind a TPU counts cores (v2 to v4, v5p) or chips (v5e, v6e); either way it is a count
of devices, and the product is the same.
"""

# Google's version to the product's name; GKE's node labels write "v5-lite" for v5e.
_TPUS = {
    "v2": "tpu v2", "v3": "tpu v3", "v4": "tpu v4", "v5e": "tpu v5e", "v5litepod": "tpu v5e",
    "v5lite": "tpu v5e", "v5p": "tpu v5p", "v6e": "tpu v6e", "7x": "tpu7x", "v7x": "tpu7x",
}  # fmt: skip
_SLICES = ("podslice", "slice", "device", "pod")
_AWS = {
    "trn1": "trainium", "trn1n": "trainium", "trn2": "trainium2", "trn2u": "trainium2",
    "trn3": "trainium3", "inf1": "inferentia", "inf2": "inferentia2",
}  # fmt: skip


def cloud_product(key: str) -> str:
    """The product's name of a cloud type, as the data has it; empty where the key is none.

    >>> cloud_product("tpu v6e 8"), cloud_product("v5p 16"), cloud_product("trn2.48xlarge")
    ('tpu v6e', 'tpu v5p', 'trainium2')
    >>> cloud_product("v100 16"), cloud_product("v4")
    ('', '')
    """
    tokens = key.replace("-", " ").split()
    if tokens[:1] == ["google"]:
        del tokens[0]
    if len(tokens) == 1 and (product := _AWS.get(tokens[0].partition(".")[0])):
        return product
    return _tpu(tokens)


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
