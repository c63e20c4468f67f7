"""The code speaks the field's language: nouns for what is bound, a reason at what makes one ask."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = [ROOT / "probe_core", ROOT / "chipdb" / "src", *sorted(ROOT.glob("plugins/*/src"))]

# Words of a story, not of the field: what a name holds has to be read elsewhere. In the anchors
# (pluggy, attrs, archspec, nvitop, execnet, hatchling, tox, datasette) 0 to 0.7 % of the bound
# names are such words; here they were 11 %.
NARRATIVE = frozenset(
    "one ones found said told left what why who whose whom asked asks wanted wants home way ways"
    " stranger strangers mute lent unasked made gone those several every more rest taken kept known"
    " given here there both others somebody nobody anything nothing everything thing things"
    " meanwhile enough sight sees tells says tell say word words look looked foreign".split()
)
MOST_NARRATIVE = 0.007
LEAST_COMMENTS = 0.015


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if path.stat().st_size)


def bound_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_names_are_the_fields_nouns(folder: Path) -> None:
    names = [n for path in sources(folder) for n in bound_names(ast.parse(path.read_text()))]
    narrative = [name for name in names if name.strip("_").lower() in NARRATIVE]
    assert len(names) > 30
    assert len(narrative) / len(names) <= MOST_NARRATIVE, sorted(set(narrative))


def test_comments_say_why() -> None:
    """Their number alone says nothing of them; none at all says that nobody was told."""
    lines = comments = 0
    for folder in FOLDERS:
        for path in sources(folder):
            text = path.read_text()
            lines += sum(1 for line in text.splitlines() if line.strip())
            tokens = tokenize.generate_tokens(io.StringIO(text).readline)
            comments += sum(token.type == tokenize.COMMENT for token in tokens)
    assert comments / lines >= LEAST_COMMENTS
