"""Reads device-tree compatibles out of the forms in which people and tools write them."""


def compatibles_in(text: str) -> tuple[str, ...]:
    r"""The compatibles of a text, most specific first, as the text has them.

    A property read whole (NUL between), source text, uevent lines, a modalias, or a plain list.

    >>> compatibles_in("rockchip,rk3588-mali\0arm,mali-valhall-csf\0")
    ('rockchip,rk3588-mali', 'arm,mali-valhall-csf')
    >>> compatibles_in('compatible = "amlogic,meson-g12a-mali", "arm,mali-bifrost";')
    ('amlogic,meson-g12a-mali', 'arm,mali-bifrost')
    >>> compatibles_in("of:NgpuT(null)Crockchip,rk3588-maliCarm,mali-valhall-csf")
    ('rockchip,rk3588-mali', 'arm,mali-valhall-csf')
    """
    text = text.replace("\\0", "\0").strip("\0 \t\r\n")
    if text.startswith("of:N"):
        return tuple(text.split("C")[1:])
    if '"' in text:
        return tuple(part.strip() for part in text.split('"')[1::2] if part.strip())
    tokens = [token.rpartition("=")[2].strip(",;'") for token in text.replace("\0", " ").split()]
    names = (token for token in tokens if token not in ("", "compatible", "compatible:"))
    return tuple(compatible for name in names for compatible in _pairs(name))


def _pairs(name: str) -> list[str]:
    """The name itself; `a,b,c,d` may also be two compatibles that a comma separates."""
    parts = name.split(",")
    if len(parts) < 4 or len(parts) % 2:
        return [name]
    return [name, *(",".join(parts[at : at + 2]) for at in range(0, len(parts), 2))]
