"""Puts faults into the source, one at a time, and tells which of them no test notices.

    python tests/mutate.py --count 60 --seed 1
    python tests/mutate.py --only probe_core/isolation --count 10
    python tests/mutate.py --count 60 --near --limit 150    # a first look: the room's tests alone
    pip install pytest-cov && python -m pytest -q -m "not heavy" --cov --cov-context=test
    python tests/mutate.py --count 60 --coverage .coverage  # the tests that ran the line first

It works in copies of the checkout. For each fault those tests run that may reach it: files that
name the module first, then those that import what imports it, its room's before others. A test
that fails is run again alone, with the fault and without, so that only what the fault did counts.
The nearest files' fast ones run first, then their heavy ones, then the fast ones of others, and
those files' heavy ones last; `--near` runs no heavy ones.
With `--coverage` the tests that executed the fault's lines run first: some of each file.

Not run by CI: a fault takes between a second and the time limit. Some faults change nothing that
anybody could notice (a smaller bound of a cache); those are for a person to judge. On a busy
machine a test may fail without the fault, too: what it alone notices then counts as not noticed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("probe_core", "chipdb/src", "plugins/*/src")
TESTS = ("tests", "chipdb/tests", "plugins/*/tests")
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", "__pycache__", ".*_cache", "_build", "build", "dist", "*.egg-info"
)
COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
_FIRST, _MOST = 2, 16
"""Files of tests in the first run and in later ones, which take twice as many each: most faults are
noticed by the nearest tests, and it takes time to read more."""
_OF_A_FILE, _COVERING = 30, 300
"""Tests of a file, and of all, that run because they executed the fault's lines: a line of the core
is executed by thousands."""
DOTTED = re.compile(r"\bprobe_\w+(?:\.\w+)*")
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.M)


class Fault(NamedTuple):
    """A replacement of the bytes from `start` to `end` of a file."""

    path: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before!r} → {self.after!r}"


class File:
    """A source file, and the places in it where a fault can be put."""

    def __init__(self, path: Path) -> None:
        self.path = path.relative_to(ROOT).as_posix()
        self.text = path.read_bytes()
        self.starts = [0]
        for line in self.text.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self._bounds: set[int] = set()

    def faults(self) -> Iterator[Fault]:
        module = ast.parse(self.text)
        # One more of a large bound bounds as well, which nobody could tell: it becomes a tenth.
        named = (
            node.value for node in module.body if isinstance(node, (ast.Assign, ast.AnnAssign))
        )
        alone = (value for value in named if isinstance(value, (ast.Constant, ast.BinOp)))
        self._bounds = {id(node) for value in alone for node in ast.walk(value)}
        # So are bytes to read, characters to keep and the end of a slice.
        for node in ast.walk(module):
            match node:
                case ast.Call(args=values):
                    self._bounds.update(map(id, values))
                case ast.Slice(upper=ast.Constant() as value):
                    self._bounds.add(id(value))
        return self._of(module)

    def _of(self, node: ast.AST) -> Iterator[Fault]:
        if _is_without_effect(node):
            return
        yield from self._at(node)
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "type_params"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from self._of(child)

    def _at(self, node: ast.AST) -> Iterator[Fault]:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARED:
                words = COMPARED[type(op)]
                yield from self._between(left, right, *words)
            case ast.BoolOp(op=op, values=[first, second, *_]):
                words = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                yield from self._between(first, second, *words)
            case ast.Constant(value=bool() as value):
                yield self._replaced(node, str(not value))
            case ast.Constant(value=int() as value):
                is_large = id(node) in self._bounds and value >= 10
                yield self._replaced(node, str(value // 10 if is_large else value + 1))
            case ast.Constant(value=float() as value):
                yield self._replaced(node, str(value * 2 or 1.0))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._replaced(node, f"bool({self._source(operand)})")
            case ast.If(test=test) | ast.IfExp(test=test):
                yield self._replaced(test, f"(not ({self._source(test)}))")
            case ast.Expr(value=ast.Call() | ast.Await()):
                yield self._replaced(node, "None")
            case ast.ExceptHandler(type=ast.expr() as kind):
                yield self._replaced(kind, "()")

    def _offsets(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.starts[node.lineno - 1] + node.col_offset
        return start, self.starts[node.end_lineno - 1] + node.end_col_offset

    def _source(self, node: ast.expr) -> str:
        start, end = self._offsets(node)
        return self.text[start:end].decode()

    def _replaced(self, node: ast.expr | ast.stmt, after: str) -> Fault:
        start, end = self._offsets(node)
        before = self.text[start:end].decode()
        return Fault(self.path, node.lineno, start, end, before, after)

    def _between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Fault]:
        """Replace the operator that stands between two expressions."""
        start, end = self._offsets(left)[1], self._offsets(right)[0]
        pattern = r"\s+".join(map(re.escape, old.split()))
        found = re.search(pattern.encode(), self.text[start:end])
        if found:  # brackets may stand around it, and comments
            place = start + found.start()
            line = self.text.count(b"\n", 0, place) + 1
            yield Fault(self.path, line, place, start + found.end(), old, new)


def _is_without_effect(node: ast.AST) -> bool:
    """Return whether only a checker of types reads it, or it forbids what nobody does.

    So do `zip(strict=True)` and `dataclass(frozen=True, slots=True)`, as an assertion does; whether
    a `TypedDict` is `total` is for the first alone.
    """
    if isinstance(node, ast.keyword):
        is_total = node.arg == "total" and isinstance(node.value, ast.Constant)
        return is_total or node.arg in ("strict", "frozen", "slots")
    name = node.test if isinstance(node, ast.If) else None
    if isinstance(node, ast.Assign):
        name = node.targets[0]
    return isinstance(name, ast.Name) and name.id in ("TYPE_CHECKING", "__all__")


def all_faults(only: str) -> list[Fault]:
    paths = (
        path for pattern in SOURCES for root in ROOT.glob(pattern) for path in root.rglob("*.py")
    )
    return [
        fault
        for path in sorted(paths)
        if path.relative_to(ROOT).as_posix().startswith(only)
        for fault in File(path).faults()
    ]


def tests_of(source: str, near: bool, line: int) -> list[list[str]]:
    """Return the test files of a module, from near to far.

    First those that name it, then those that reach it by imports, over few modules first; with
    `near` of these the room's own. Of equals those first that name the function of the line.
    """
    parts = list(Path(source).with_suffix("").parts)
    if "src" in parts:
        parts = parts[parts.index("src") + 1 :]
    module = ".".join(part for part in parts if part != "__init__")
    own = {path for name in _folders(source, parts) for path in ROOT.glob(f"{name}/**/test_*.py")}
    steps = _steps(module)
    function = re.compile(rf"\b_?{_function(ROOT / source, line).lstrip('_')}\b")
    ranked = []
    for path in (path for pattern in TESTS for path in ROOT.glob(f"{pattern}/**/test_*.py")):
        text = path.read_text("utf-8")
        is_near = module in text or path in own
        if is_near or (path in steps and not near):
            mentions = text.count(module) + 10 * (parts[-1] in path.stem)
            mentions += 20 * bool(function.search(text)) + 20 * (path in own)
            far = 0 if module in text else steps.get(path, len(steps))
            ranked.append((far, -mentions, path.relative_to(ROOT).as_posix()))
    paths = [path for *_, path in sorted(ranked)]
    groups, count = [], _FIRST
    while paths:
        groups.append(paths[:count])
        paths, count = paths[count:], min(2 * count, _MOST)
    return groups


def _steps(module: str) -> dict[Path, int]:
    """Return over how many imports each file reaches a module, for those that do."""
    users = _users()
    steps: dict[Path, int] = {}
    reached, count = {module}, 0
    while reached:
        count += 1
        paths = {path for name in reached for path in users.get(name, ())} - steps.keys()
        steps |= dict.fromkeys(paths, count)
        reached = {module_of(path) for path in paths}
    return steps


@cache
def _users() -> dict[str, set[Path]]:
    """Return which files import, or name in a text, each module, whatever else they import."""
    users: dict[str, set[Path]] = {}
    for path in (p for pattern in (*SOURCES, *TESTS) for p in ROOT.glob(f"{pattern}/**/*.py")):
        nodes: list[ast.AST] = [ast.parse(path.read_bytes())]
        while nodes:
            node = nodes.pop()
            if _is_without_effect(node):
                continue
            nodes += ast.iter_child_nodes(node)
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                names = DOTTED.findall(node.value)
            for name in names:
                users.setdefault(name, set()).add(path)
    return users


def module_of(path: Path) -> str:
    """Return the name by which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[parts.index("src") + 1 :] if "src" in parts else parts
    parts = parts[-1:] if "tests" in parts else parts  # what stands beside tests is on their path
    return ".".join(part for part in parts if part != "__init__")


def _function(path: Path, line: int) -> str:
    """Return the name of the innermost function, or class, at a line; else the file's."""
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [
        (node.lineno, node.name)
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, named) and node.lineno <= line <= (node.end_lineno or 0)
        if not node.name.startswith("__")
    ]
    return max(found)[1] if found else path.stem


class Coverage:
    """Which tests executed a line, as coverage.py recorded it in some files."""

    def __init__(self, paths: Sequence[str]) -> None:
        # Installed by those who use it, and in no list of requirements.
        self._files = [import_module("coverage").CoverageData(path) for path in paths]
        for file in self._files:
            file.read()

    def groups(self, fault: Fault) -> list[list[str]]:
        """Return the tests that executed the statement of a fault, those of few first."""
        found: dict[str, list[str]] = {}
        lines = statement_at(ROOT / fault.path, fault.line)
        for contexts in (file.contexts_by_lineno(fault.path) for file in self._files):
            for name in {name for line in lines for name in contexts.get(line, ())}:
                test = name.rpartition("|")[0]
                found.setdefault(test.partition("::")[0], []).append(test)
        stem = Path(fault.path).stem
        ranked = sorted(found, key=lambda path: (stem not in path, len(found[path])))
        tests = [test for path in ranked if path for test in sorted(found[path])[:_OF_A_FILE]]
        half = min(len(tests), _COVERING) // 4
        return [group for group in (tests[:half], tests[half:_COVERING]) if group]


def statement_at(path: Path, line: int) -> range:
    """Return the lines of the smallest statement at a line, its body's apart."""
    ranges = [range(line, line + 1)]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.stmt):
            last = getattr(node, "test", None) or node
            end = node.lineno if last is node and hasattr(node, "body") else last.end_lineno
            ranges.append(range(node.lineno, (end or node.lineno) + 1))
    return min((r for r in ranges[1:] if line in r), key=len, default=ranges[0])


def _folders(source: str, parts: list[str]) -> list[str]:
    """Return the folders of tests that belong to a source file."""
    if not source.startswith("probe_core"):
        return [str(Path(*Path(source).parts[: Path(source).parts.index("src")], "tests"))]
    others = {"leasing": "lease", "selection": "visibility", "pipeline": "machines"}
    return ["tests/core", f"tests/{others.get(parts[1], parts[1])}"]


class OutOfTime(Exception):
    """The tests of a fault took longer than the limit, so whether one notices it is not known."""


class Checkout:
    """A copy of the checkout, of which one file may have a fault."""

    def __init__(self, folder: Path, near: bool, coverage: Coverage | None) -> None:
        self.root = folder / "checkout"
        self._near = near
        self._coverage = coverage
        self._marks = ["not heavy"] if near else ["not heavy", "heavy"]
        self._faults = 0
        shutil.copytree(ROOT, self.root, symlinks=True, ignore=NOT_COPIED)
        # The packages are installed from the checkout itself: the copy's come first.
        paths = [str(path) for pattern in SOURCES for path in self.root.glob(pattern)]
        paths = [str(self.root), *(path for path in paths if path.endswith("src"))]
        self.environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}

    def judged(self, fault: Fault, limit_s: float) -> str | None:
        """Return the test that notices the fault; None where none does. Raises `OutOfTime`."""
        end = time.monotonic() + limit_s
        skipped: list[str] = []
        while True:
            with self._put_in(fault):
                groups = tests_of(fault.path, self._near, fault.line)
                first, *others = [[(group, mark) for mark in self._marks] for group in groups]
                runs = first + [run for marks in zip(*others, strict=True) for run in marks]
                if self._coverage is not None:
                    runs = [(group, "") for group in self._coverage.groups(fault)] + runs
                failures = (self._first_failure(group, skipped, end, mark) for group, mark in runs)
                failed = next(filter(None, failures), None)
                # Alone it fails again, or it was the load of the machine.
                is_due_to_it = failed and self._first_failure([failed], [], end)
            if failed is None or (is_due_to_it and not self._first_failure([failed], [], end)):
                return failed
            skipped.append(failed)

    @contextmanager
    def _put_in(self, fault: Fault) -> Iterator[None]:
        path = self.root / fault.path
        text, status = path.read_bytes(), path.stat()
        try:
            path.write_bytes(text[: fault.start] + fault.after.encode() + text[fault.end :])
            # Bytecode is told from its source's by whole seconds and by size, and two faults of one
            # file may have the same size.
            self._faults += 1
            os.utime(path, (status.st_atime, status.st_mtime + 1000 + self._faults))
            yield
        finally:
            path.write_bytes(text)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _first_failure(
        self, tests: list[str], skipped: list[str], end: float, mark: str = ""
    ) -> str | None:
        options = ["-x", "-q", "-rfE", "-m", mark, "-p", "no:cacheprovider", "--tb=no"]
        # A test that hangs has a name then: by a thread, it would end the process without one.
        options += ["-o", "timeout_method=signal"]
        command = [sys.executable, "-m", "pytest", *options]
        for name in skipped:
            command += ["--deselect" if "::" in name else "--ignore", name]
        try:
            done = subprocess.run(
                [*command, *tests],
                cwd=self.root,
                env=self.environ,
                capture_output=True,
                text=True,
                timeout=max(1.0, end - time.monotonic()),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise OutOfTime from None
        if done.returncode in (0, 5):
            return None
        found = FAILED.search(done.stdout)
        # Without a name: the tests could not be collected, or a test that hung ended the process.
        return found[1] if found else tests[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=20, help="how many faults")
    parser.add_argument("--seed", type=int, default=1, help="another one gives other faults")
    parser.add_argument("--only", default="", metavar="PATH", help="what the files begin with")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each fault")
    parser.add_argument("--jobs", type=int, default=1, help="faults at once, each in its own copy")
    parser.add_argument("--near", action="store_true", help="the tests of the module's room alone")
    parser.add_argument("--coverage", nargs="*", metavar="FILE", help="what coverage.py recorded")
    parser.add_argument("--list", action="store_true", help="show the faults and put none in")
    options = parser.parse_args()
    faults = all_faults(options.only)
    chosen = random.Random(options.seed).sample(faults, min(options.count, len(faults)))
    if options.list:
        print(*chosen, sep="\n")
        return 0
    coverage = Coverage(options.coverage) if options.coverage else None
    return _run(chosen, options.limit, options.jobs, options.near, coverage)


def _run(
    faults: list[Fault], limit_s: float, jobs: int, near: bool, coverage: Coverage | None
) -> int:
    marks: list[str] = []
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        free: SimpleQueue[Checkout] = SimpleQueue()
        for number in range(jobs):
            free.put(Checkout(Path(folder, str(number)), near, coverage))

        def judge(fault: Fault) -> tuple[str, Fault, str]:
            checkout = free.get()
            try:
                test = checkout.judged(fault, limit_s)
            except OutOfTime:
                return "no time", fault, ""
            finally:
                free.put(checkout)
            return "noticed" if test else "NOT noticed", fault, test or ""

        with ThreadPoolExecutor(jobs) as pool:
            for done in as_completed(pool.submit(judge, fault) for fault in faults):
                mark, fault, test = done.result()
                print(f"{mark:11}  {fault}  {test}", flush=True)
                marks.append(mark)
    noticed, judged = marks.count("noticed"), len(marks) - marks.count("no time")
    print(
        f"{noticed} of {judged} noticed ({noticed / max(1, judged):.0%}),"
        f" {len(marks) - judged} too slow"
    )
    return 1 if "NOT noticed" in marks else 0


if __name__ == "__main__":
    sys.exit(main())
