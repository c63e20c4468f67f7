"""What figures are as plain JSON data: types alone, which nothing imports when it runs."""

from typing import NotRequired, TypedDict


class PeakJson(TypedDict):
    """A peak as plain JSON data; figures in TFLOPS (TOPS for integers) and MHz."""

    dtype: str
    path: str
    accumulate: str
    sparsity: str
    clock: str
    tflops: float
    source: str
    confidence: str
    variant: NotRequired[str | None]
    mhz: NotRequired[float | None]
    low: NotRequired[float | None]
    condition: NotRequired[str | None]
    published: NotRequired[float | None]
    confirmed_by: NotRequired[str | None]
    bound: NotRequired[str | None]
    high: NotRequired[float | None]
