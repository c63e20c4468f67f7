"""Matrix products whose result is known: operands of small whole numbers, and what shows an error.

All sums are exact in every type, so that a result is right or wrong and no threshold decides. A
product is compared with its operands by sums with random odd weights, modulo 2^32: a single wrong
element changes the sum of its row and of its column, and four errors that cancel each other in
plain sums do not cancel there. Nothing here imports a library.
"""

from __future__ import annotations

import random
from array import array
from operator import mul
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_MODULUS = 1 << 32

RANGES = {"int8": 128, "fp32": 128, "fp16": 4, "bf16": 128}
"""Type to the bound of an operand's absolute value. Products of edge 1024 are summed exactly:
1024 x 128 x 128 is 2^24, which fp32 holds; fp16 has an operand of any of these and sums in fp32."""


class Operands(NamedTuple):
    """Two square matrices of signed bytes, row by row, and the sums that their product has."""

    edge: int
    first: bytes
    second: bytes
    weights: tuple[int, ...]
    rows: tuple[int, ...]
    """Of each row of the product its sum with the weights, modulo 2^32."""
    columns: tuple[int, ...]


class Wrong(NamedTuple):
    """Where a product is wrong: its rows and columns whose sums are others."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def where(self) -> str:
        """The place for people: one element by row and column, else how many of both."""
        if len(self.rows) == len(self.columns) == 1:
            return f"the element in row {self.rows[0]}, column {self.columns[0]}"
        return f"elements in {len(self.rows)} rows and {len(self.columns)} columns"


def made(edge: int, bound: int, seed: int) -> Operands:
    """Return operands of random whole numbers from -`bound` up to below `bound`, at most 128."""
    dice = random.Random(seed)
    table = bytes((value % (2 * bound) - bound) % 256 for value in range(256))
    first, second = (dice.randbytes(edge * edge).translate(table) for _ in range(2))
    weights = tuple(dice.getrandbits(32) | 1 for _ in range(edge))
    a, b = array("b", first), array("b", second)
    return Operands(
        edge,
        first,
        second,
        weights,
        rows=_row_sums(a, _row_sums(b, weights)),
        columns=_column_sums(b, _column_sums(a, weights)),
    )


def wrong(operands: Operands, product: bytes | memoryview) -> Wrong | None:
    """Return where a product, as int32 row by row, is wrong; None where no sum is another."""
    values = array("i", bytes(product))
    rows, columns = _row_sums(values, operands.weights), _column_sums(values, operands.weights)
    found = Wrong(_others(rows, operands.rows), _others(columns, operands.columns))
    return found if found.rows or found.columns else None


def _row_sums(values: array[int], weights: Sequence[int]) -> tuple[int, ...]:
    edge = len(weights)
    starts = range(0, edge * edge, edge)
    return tuple(sum(map(mul, values[at : at + edge], weights)) % _MODULUS for at in starts)


def _column_sums(values: array[int], weights: Sequence[int]) -> tuple[int, ...]:
    edge = len(weights)
    return tuple(sum(map(mul, values[at::edge], weights)) % _MODULUS for at in range(edge))


def _others(found: Sequence[int], expected: Sequence[int]) -> tuple[int, ...]:
    pairs = zip(found, expected, strict=True)
    return tuple(at for at, (own, right) in enumerate(pairs) if own != right)


# A product of any size of which each element is known: rows of one sign times columns of one sign.


def signs(edge: int, seed: int) -> list[int]:
    """Return a random sign, 1 or -1, for each row or column."""
    dice = random.Random(seed)
    return [dice.choice((1, -1)) for _ in range(edge)]


def unlike_signs(
    rows: Sequence[int], columns: Sequence[int], product: memoryview
) -> tuple[int, int] | None:
    """Return row and column of the first wrong element of a product of signs, as fp32; None: none.

    The element in row i and column j is the edge times the signs of both.
    """
    edge = len(rows)
    patterns = {
        sign: array("f", [edge * sign * column for column in columns]).tobytes() for sign in (1, -1)
    }
    found, width = product.cast("B"), edge * 4
    for row, sign in enumerate(rows):
        own = found[row * width : (row + 1) * width]
        if own != patterns[sign]:
            pairs = zip(own.cast("I"), memoryview(patterns[sign]).cast("I"), strict=True)
            return row, next(at for at, (value, right) in enumerate(pairs) if value != right)
    return None
