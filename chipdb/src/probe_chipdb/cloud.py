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
    words = key.replace("-", " ").split()
    if words[:1] == ["google"]:
        del words[0]
    if len(words) == 1 and (product := _AWS.get(words[0].partition(".")[0])):
        return product
    return _tpu(words)


def _tpu(words: list[str]) -> str:
    named = words[:1] in (["tpu"], ["tpu7x"])
    if words[:1] == ["tpu"]:
        del words[0]
    elif named:
        words = ["7x", *words[1:]]
    if words[1:2] == ["lite"]:
        words = [words[0] + "lite", *words[2:]]
    counted = len(words) == 2 and len(words[1]) <= 5 and words[1].isdecimal()
    sliced = len(words) == 2 and words[1] in _SLICES
    if not words or len(words) > 2 or (len(words) == 2 and not (counted or (sliced and named))):
        return ""
    return _TPUS.get(words[0], "") if named or counted else ""
