"""Products that are known: every wrong element is found, by the sums and on a device that errs."""

from __future__ import annotations

import os
import platform
import random
from array import array
from importlib.metadata import version
from pathlib import Path

import pytest
import stand_in

from probe_bench import products
from probe_bench.session import child_environ, measure
from probe_bench.tasks import Job, Line, Task

EDGE = 24


def product_of(operands: products.Operands) -> list[int]:
    edge = operands.edge
    a, b = array("b", operands.first), array("b", operands.second)
    return [
        sum(a[row * edge + at] * b[at * edge + column] for at in range(edge))
        for row in range(edge)
        for column in range(edge)
    ]


def packed(values: list[int]) -> bytes:
    return array("i", values).tobytes()


@pytest.fixture(scope="module")
def known() -> tuple[products.Operands, list[int]]:
    operands = products.made(EDGE, 128, seed=7)
    return operands, product_of(operands)


def test_the_right_product_passes(known: tuple[products.Operands, list[int]]) -> None:
    operands, right = known
    assert products.wrong(operands, packed(right)) is None
    for bound in (1, 4, 128):
        operands = products.made(8, bound, bound)
        assert products.wrong(operands, packed(product_of(operands))) is None
        assert {abs(value) <= bound for value in array("b", operands.first)} == {True}


def test_a_flipped_bit_is_found_in_its_place(known: tuple[products.Operands, list[int]]) -> None:
    operands, right = known
    dice = random.Random(32)
    for _ in range(400):
        row, column, bit = dice.randrange(EDGE), dice.randrange(EDGE), dice.randrange(32)
        values = array("I", packed(right))
        values[row * EDGE + column] ^= 1 << bit
        found = products.wrong(operands, values.tobytes())
        assert found == products.Wrong((row,), (column,))
        assert found.where == f"the element in row {row}, column {column}"


def test_errors_that_cancel_in_plain_sums_are_found(
    known: tuple[products.Operands, list[int]],
) -> None:
    operands, right = known
    dice = random.Random(8)
    for _ in range(100):
        (top, bottom), (left, right_) = (sorted(dice.sample(range(EDGE), 2)) for _ in range(2))
        values = [*right]
        for row, column, change in (
            (top, left, 9),
            (top, right_, -9),
            (bottom, left, -9),
            (bottom, right_, 9),
        ):
            values[row * EDGE + column] += change
        found = products.wrong(operands, packed(values))
        assert found == products.Wrong((top, bottom), (left, right_))
        assert found.where == "elements in 2 rows and 2 columns"


def test_errors_that_cancel_in_each_column_are_found_by_rows(
    known: tuple[products.Operands, list[int]],
) -> None:
    operands, right = known
    first, second = operands.weights[:2]
    columns, rows = [*right], [*right]
    # Weighted, both cancel in the sums of one direction.
    columns[0] += second
    columns[EDGE] -= first
    assert products.wrong(operands, packed(columns)) == products.Wrong((0, 1), ())
    rows[0] += second
    rows[1] -= first
    assert products.wrong(operands, packed(rows)) == products.Wrong((), (0, 1))


def test_swapped_rows_and_a_lost_block_are_found(
    known: tuple[products.Operands, list[int]],
) -> None:
    operands, right = known
    rows = [right[at * EDGE : (at + 1) * EDGE] for at in range(EDGE)]
    rows[3], rows[9] = rows[9], rows[3]
    assert products.wrong(operands, packed([value for row in rows for value in row])) is not None
    zeros = [0 if at % EDGE < 8 and at < 8 * EDGE else value for at, value in enumerate(right)]
    found = products.wrong(operands, packed(zeros))
    assert found == products.Wrong(tuple(range(8)), tuple(range(8)))


def test_a_product_of_signs_is_known_everywhere() -> None:
    rows, columns = products.signs(16, 1), products.signs(16, 2)
    values = array("f", [16.0 * row * column for row in rows for column in columns])
    assert products.unlike_signs(rows, columns, memoryview(values)) is None
    for at in range(256):
        wrong = array("f", values)
        wrong[at] = float("nan") if at % 2 else -wrong[at]
        assert products.unlike_signs(rows, columns, memoryview(wrong)) == divmod(at, 16)


# On a device: tinygrad on this computer's CPU, by a compiler that can be made to err.

needs_gcc = pytest.mark.skipif(stand_in.GCC is None, reason="gcc stands in for clang")


def task(figure: str, dtype: str | None = None) -> Task:
    kind = {"read": "memory", "write": "memory", "copy": "memory"}.get(figure, "matmul")
    kind = "link" if figure in ("upload", "download") else kind
    return {"figure": figure, "kind": kind, "dtype": dtype, "library": "tinygrad"}


def lines_of(
    place: Path, compiler: str, *tasks: Task, backend: str = "CPU", seconds: float = 0.2
) -> list[Line]:
    folder = place / "run"
    folder.mkdir()
    job: Job = {
        "tasks": list(tasks),
        "seconds": seconds,
        "folder": str(folder),
        "cpus": [],
        "flags": [],
        "arch": "x86_64",
        "backends": [backend],
        "address": None,
        "buffer_bytes": 1 << 16,
    }
    environ = os.environ | {"PATH": f"{compiler}{os.pathsep}{os.environ['PATH']}"}
    own = child_environ(environ, str(folder), [backend], version("tinygrad"))
    lines, reason = measure(job, own, lambda place: None, 120.0)
    assert reason is None
    return [line for line in lines if line["event"] not in ("begin", "clock")]


@pytest.mark.heavy
@needs_gcc
def test_a_device_that_computes_well_is_compared_and_timed(tmp_path: Path) -> None:
    tasks = (
        # gcc converts to fp16 by functions of its library, which tinygrad does not link.
        *(task("products", dtype) for dtype in ("int8", "fp32")),
        *(task("compute", "fp32"), task("read"), task("write"), task("copy")),
        *(task("upload"), task("download")),
    )
    lines = lines_of(tmp_path, stand_in.compiler(tmp_path / "bin"), *tasks)
    assert [line["event"] for line in lines] == ["compared"] * 2 + ["result"] * 6, lines
    assert all(line["count"] >= 3 for line in lines[:2])
    assert all(min(line["rates"]) > 0 for line in lines[2:])


@pytest.mark.heavy
@needs_gcc
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the fault reads x86's counter")
def test_a_product_that_is_wrong_now_and_then_is_found(tmp_path: Path) -> None:
    fault = "if (__builtin_ia32_rdtsc() / 64 % 2 == 0) *(RESULT+70000) = 5;"
    compiler = stand_in.compiler(tmp_path / "bin", text="signed char", result="int", fault=fault)
    (line,) = lines_of(tmp_path, compiler, task("products", "int8"), seconds=20.0)
    assert line["event"] == "wrong", line
    assert "is wrong: the element in row 136, column 368" in line["reason"]


@needs_gcc
@pytest.mark.parametrize(
    ("own", "text", "result", "fault", "reason"),
    [
        (
            task("products", "int8"),
            *("signed char", "int", "*(RESULT+70000) = 5;"),
            "product 1 of int8 matrices of edge 512 is wrong: the element in row 136, column 368",
        ),
        pytest.param(
            task("compute", "fp32"),
            *("float", "float", "*(RESULT+4097) += 1.0f;"),
            "a fp32 product of edge 256 is wrong in row 0, column 1",
            marks=pytest.mark.heavy,
        ),
        pytest.param(
            *(task("write"), "{2,2,2,2}", "int", "*(RESULT+9) = 7;"),
            "memory is wrong after a write",
            marks=pytest.mark.heavy,
        ),
        pytest.param(
            *(task("copy"), "+1)", "int", "*(RESULT+15000) = 7;"),
            "memory is wrong after a copy",
            marks=pytest.mark.heavy,
        ),
    ],
    ids=["products", "bench", "write", "copy"],
)
def test_one_wrong_element_is_found(
    own: Task, text: str, result: str, fault: str, reason: str, tmp_path: Path
) -> None:
    compiler = stand_in.compiler(tmp_path / "bin", text=text, result=result, fault=fault)
    (line,) = lines_of(tmp_path, compiler, own)
    assert (line["event"], reason in line["reason"]) == ("wrong", True), line
