"""Cuts a normalised name into tokens, and reads the sizes of memory among them."""


def tokens_in(key: str) -> list[str]:
    """The tokens of a normalised name, without a count of devices; a number with its unit is one.

    >>> tokens_in("gpu_8x_h100_sxm5"), tokens_in("rtx 3060 12 gb"), tokens_in("m4 max 40 core gpu")
    (['h100', 'sxm5'], ['rtx', '3060', '12gb'], ['m4', 'max', 'core:40', 'gpu'])
    """
    if key.startswith("apple ") and key.endswith(")"):
        head, _, count = key[:-1].rpartition(" (")
        key = f"{head} {count} core" if count.isdecimal() else key  # fastfetch: "M4 Pro (20)"
    head, point, count = key.rpartition(".")
    if point and count[-1:] == "x" and count[:-1] in _COUNTS:
        key = head.removesuffix(" ib")  # Crusoe's types: "h100-80gb-sxm-ib.8x"
    for mark in "_,()":
        key = key.replace(mark, " ")
    key = key.replace("-", " ").replace("max q", "maxq").replace("tensor core", "tensor")
    key = key.replace(" gpu core", " core").replace("adreno gpu ", "adreno ")  # "10 GPU cores"
    # SkyPilot's and Slurm's count: "H100:8"
    head, colon, count = key.rpartition(":")
    key = head if colon and len(count) <= 2 and count.isdecimal() else key
    tokens = key.split()
    if tokens[:1] == ["gpu"]:
        del tokens[0]  # Lambda's types: gpu_8x_h100_sxm5
    if tokens[-2:] == ["ai", "accelerator"]:
        del tokens[-2:]  # "Intel Gaudi 3 AI Accelerator"
    if tokens[:1] == ["powervr"] and tokens[2:3] == ["series"]:
        del tokens[1:3]  # "PowerVR D-Series DXT-48-1536"
    tokens = _without_count(tokens)
    _name_cores(tokens)
    joined: list[str] = []
    for token in tokens:
        if token in ("gb", "gib", "mib", "g", "cores", "core") and joined and _is_count(joined[-1]):
            number = joined.pop()
            token = f"core:{number}" if token in ("core", "cores") else number + token
        # "(ID=0x2684)" of ANGLE, and the driver's release in a line of nvidia-smi's CSV
        if not token.startswith(("id=", "deviceid=")) and not _is_release(token):
            joined.append(token)
    return joined


def _name_cores(tokens: list[str]) -> None:
    """`M3 Max 30C`: Apple's chips alone, for an Adreno 7c is a product."""
    chip = tokens[1:2] if tokens[:1] == ["apple"] else tokens[:1]
    apples = chip and chip[0][:1] == "m" and chip[0][1:].isdecimal()
    for at, token in enumerate(tokens) if apples else ():
        if len(token) <= 3 and token[-1:] == "c" and token[:-1].isdecimal():
            tokens[at] = f"core:{token[:-1]}"


_COUNTS = ("1", "2", "4", "8", "16")


def _is_count(token: str) -> bool:
    whole, _, fraction = token.partition(".")
    return len(token) <= 8 and whole.isdecimal() and (not fraction or fraction.isdecimal())


def _is_release(token: str) -> bool:
    return token.count(".") == 2 and token.replace(".", "").isdecimal()


def _without_count(tokens: list[str]) -> list[str]:
    """`8x H100`, `8xh100`, `2 x H100`: how many there are is not what they are.

    "x2" behind is left: a FirePro S9300 x2 is one card with two chips.
    """
    if len(tokens) > 2 and len(tokens[0]) <= 2 and tokens[0].isdecimal() and tokens[1] == "x":
        return tokens[2:]
    sized = len(tokens) > 2 and tokens[-2] in _COUNTS and size_in(tokens[-1]) is not None
    # Scaleway's types: "L40S-1-48G", "H100-SXM-8-80G"; but a Gaudi 2 is no Gaudi
    if sized and (tokens[-3] == "sxm" or not tokens[-3].isalpha()):
        return [*tokens[:-2], tokens[-1]]
    if len(tokens) > 1 and tokens[-1] in _COUNTS and size_in(tokens[-2]) is not None:
        return tokens[:-1]  # the device types of Google's xpk: "h100-mega-80gb-8"
    if tokens:
        head, x, model = tokens[0].partition("x")
        if x and 1 <= len(head) <= 2 and head.isdecimal():
            return [model, *tokens[1:]] if model else tokens[1:]
        number = tokens[-1].removesuffix("x")  # DigitalOcean's "H100 GPU - 8X"
        counted = len(number) < len(tokens[-1]) <= 3 and number.isdecimal()
        # but "Gaudi 3X" would be another Gaudi 3
        if counted and len(tokens) > 1 and (tokens[-2] == "gpu" or not tokens[-2].isalpha()):
            return tokens[:-1]
    return tokens


def size_in(token: str) -> float | None:
    """The memory that a token states, in GB as printed, or None.

    >>> size_in("24gb"), size_in("144g"), size_in("24564mib"), size_in("1g.10gb")
    (24.0, 144.0, 23.98828125, None)
    """
    if not token[:1].isdecimal():
        return None  # most tokens
    for unit, divisor in (("gib", 1.0), ("mib", 1024.0), ("gb", 1.0), ("g", 1.0)):
        number = token.removesuffix(unit)
        if number != token and number.isascii() and _is_count(number):
            return float(number) / divisor or None
    return None
