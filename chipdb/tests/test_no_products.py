"""No product stands in the code that reads names: rows of data say what each is called."""

import ast
from pathlib import Path

import pytest

import probe_chipdb
from probe_chipdb.database import Database
from probe_chipdb.rules import built

SOURCE = Path(probe_chipdb.__path__[0])
MODULES = (
    "candidates", "cpu", "database", "entry/extras", "entry/name_rules", "entry/pack", "exclusions",
    "facts", "matching", "name_facts", "name_form", "name_lookup", "near", "patterns", "rules",
    "shortcuts", "spelling",
)  # fmt: skip


def literals(path: Path) -> list[tuple[int, str]]:
    """Each text of a module that is no docstring, and its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    notes = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes
    ]


def words(text: str) -> set[str]:
    return set("".join(letter if letter.isalnum() else " " for letter in text.lower()).split())


@pytest.fixture(scope="module")
def products(real: Database) -> set[str]:
    """Words by which products are told apart: with a digit, or a brand, a series, a family."""
    vendors = {*built().words("maker"), *built().words("maker").values()}
    names = {word for chip in real.chips() for word in words(chip.name)}
    numbered = {word for word in names if len(word) > 2 and any(map(str.isdecimal, word))}
    brands = {word for text in built().set("brand") for word in words(text)}
    series = {
        "rtx",
        "gtx",
        "grid",
        "mali",
        "adreno",
        "immortalis",
        "tegra",
        "orin",
        "vega",
        "gaudi",
    }
    plain = {"ai", "pro", "data", "center", "gpu", "cloud"}  # of brands, and of any sentence
    return (numbered | brands | series) - vendors - plain


@pytest.mark.parametrize("module", MODULES)
def test_no_product_stands_in_the_code_that_reads_names(module: str, products: set[str]) -> None:
    assert len(products) > 1400
    named = [
        (line, text) for line, text in literals(SOURCE / f"{module}.py") if words(text) & products
    ]
    assert named == []
