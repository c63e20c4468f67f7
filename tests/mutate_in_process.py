"""Judges many small faults in minutes: each is put into a fork of one process that has all tests.

    python tests/mutate_in_process.py --count 60 --seed 1               # all fast tests
    python tests/mutate_in_process.py --count 60 --seed 1 --near 8      # the nearest files' alone
    python tests/mutate_in_process.py --only probe_core/leasing -- tests/lease
    python tests/mutate_in_process.py --count 60 --seed 1 --edit 120    # and what it cannot judge

The faults are those of `mutate.py`. The tests are collected once, and run once in a fork that notes
which test executes which line. Then there is a fork for each fault: it exchanges the code of the
file's functions for code compiled with the fault, or the values that it changes in the module, and
runs the tests that execute the line, those first that noticed another fault of the file.

What runs in another process, a prober's child or a command, reads the file, which has no fault; a
copy of this process, made by `os.fork` alone, has it. What ran at import has none. Such a fault
counts as not noticed, or as not judged where no test executes its line here; `--edit` judges both
as `mutate.py` does, by the nearest tests with the file edited.
A test that fails without a fault judges none. After `--budget` seconds of tests no more are run.

It runs in a namespace of processes, with `unshare` of util-linux: a fault in code that ends other
processes would reach all of them elsewhere. Not run by CI.
"""

from __future__ import annotations

import _thread
import argparse
import ast
import gc
import os
import pickle
import random
import re
import select
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import machinery, util
from itertools import chain
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple, TypeVar

import pytest
from _pytest.runner import runtestprotocol
from mutate import (
    ROOT,
    TESTS,
    Checkout,
    Fault,
    OutOfTime,
    all_faults,
    module_of,
    statement_at,
    tests_of,
)

from probe_core import fastpath

T = TypeVar("T")
_LIMIT_S = 60.0
"""How long the tests of a fault may take beyond three times what they took without it."""
_TEST_LIMIT_S = 20
"""When a test that hangs fails."""
_TRACE_LIMIT_S = 3600.0
_PLAIN = (int, float, str, bytes, re.Pattern, type(None))
_NAMESPACE = ("unshare", "--fork", "--pid", "--mount-proc", "--kill-child")
_OF_NO_ROOT = ("--user", "--map-current-user")


class Ran(NamedTuple):
    """What the tests did without a fault."""

    tests: dict[str, dict[int, list[str]]]
    """Of each file and line the tests that executed it, of those that pass."""
    seconds: dict[str, float]


class Judged(NamedTuple):
    fault: Fault
    mark: str
    detail: str
    """The test that noticed it, or why none did."""

    def __str__(self) -> str:
        return f"{self.mark:11}  {self.fault}  {self.detail}"


class NotJudged(Exception):
    """The fault cannot be put into a process that has imported the module."""


@dataclass
class Judge:
    """A plugin of pytest that judges faults instead of running the tests."""

    faults: Sequence[Fault]
    budget_s: float
    done: list[Judged] = field(default_factory=list)
    _noticed: dict[str, Counter[str]] = field(default_factory=dict)
    """Of each file the functions of tests that noticed a fault."""

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.unfreeze()  # functions that are frozen are in no list
        items = {item.nodeid: item for item in session.items}
        paths = {str(ROOT / fault.path): fault.path for fault in self.faults}
        ran = in_fork(lambda: traced(session.items, paths), _TRACE_LIMIT_S)
        failed = len(items) - len(ran.seconds)
        print(f"{len(items)} tests, of which {failed} fail; {len(self.faults)} faults", flush=True)
        for fault in self.faults:
            self.done.append(self._judged(fault, ran, items))
            print(self.done[-1], flush=True)
        return True

    def _judged(self, fault: Fault, ran: Ran, items: dict[str, pytest.Item]) -> Judged:
        lines = ran.tests.get(fault.path, {})
        statement = statement_at(ROOT / fault.path, fault.line) if in_function(fault) else lines
        executed = [line for line in statement if line in lines]
        # What a thread of a library's own executes is not seen: then any test of the file may tell.
        tests = list(self._chosen(fault, ran, executed or lines))
        limit = _LIMIT_S + 3 * sum(ran.seconds[name] for name in tests)
        try:
            failed = in_fork(lambda: failing(fault, [items[name] for name in tests]), limit)
        except NotJudged as error:
            return Judged(fault, "not judged", str(error))
        except EOFError:
            return Judged(fault, "noticed", "it ended the process of its tests")
        if failed is not None:
            self._noticed.setdefault(fault.path, Counter())[function_of(failed)] += 1
            return Judged(fault, "noticed", failed)
        if not executed:
            return Judged(fault, "not judged", "no test executes it where that can be seen")
        count = len({name for line in executed for name in lines[line]})
        return Judged(fault, "NOT noticed", f"{len(tests)} of {count} tests")

    def _chosen(self, fault: Fault, ran: Ran, executed: Iterable[int]) -> Iterator[str]:
        """Yield the tests that execute some lines, for as long as the budget lasts."""
        lines = ran.tests.get(fault.path, {})
        found = {name for line in executed for name in lines.get(line, ())}
        noticed = self._noticed.get(fault.path, Counter())
        seen: Counter[str] = Counter()
        ranked = []
        for name in sorted(found, key=ran.seconds.__getitem__):
            function = function_of(name)
            seen[function] += 1
            # Two of each function before more of one: a table of cases has hundreds.
            ranked.append((seen[function] > 2, -noticed[function], ran.seconds[name], name))
        spent = 0.0
        for *_, seconds, name in sorted(ranked):
            if spent > self.budget_s:
                return
            spent += seconds
            yield name


def function_of(test: str) -> str:
    return test.partition("[")[0]


def in_fork(work: Callable[[], T], limit_s: float) -> T:
    """Return what a function returns in a fork.

    Raises `NotJudged` where it takes too long, and `EOFError` where it ends the process.
    """
    with tempfile.TemporaryFile() as answer:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            _answer(work, answer.fileno())
        ended = os.pidfd_open(child)
        try:
            if not select.select([ended], [], [], limit_s)[0]:
                raise NotJudged(f"took over {limit_s:.0f} s")
        finally:
            os.close(ended)
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        answer.seek(0)
        result: T | NotJudged = pickle.load(answer)
    if isinstance(result, NotJudged):
        raise result
    return result


def _answer(work: Callable[[], object], file: int) -> None:
    """Write what a function returns, or why it is not judged, and end the process."""
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        try:
            result = work()
        except Exception as error:
            result = NotJudged(repr(error))
        os.pwrite(file, pickle.dumps(result), 0)
    finally:
        os._exit(0)


def traced(items: list[pytest.Item], paths: dict[str, str]) -> Ran:
    """Run the tests, and note which lines of some files each executes."""
    tests: dict[str, dict[int, list[str]]] = {}
    seconds: dict[str, float] = {}
    lines: set[tuple[str, int]] = set()
    own, getpid = os.getpid(), os.getpid
    copies = Path(tempfile.mkstemp(prefix="lines-")[1])

    def of_line(frame: FrameType, event: str, _: object) -> Any:
        place = frame.f_code.co_filename, frame.f_lineno
        if place not in lines:
            lines.add(place)
            if getpid() != own:  # a copy of this process, which may close what it inherited
                with suppress(OSError), copies.open("ab", 0) as file:
                    file.write(pickle.dumps(place))
        return of_line

    def of_call(frame: FrameType, event: str, _: object) -> Any:
        return of_line(frame, event, _) if frame.f_code.co_filename in paths else None

    def followed(function: Callable[..., object], arguments: tuple[object, ...]) -> None:
        sys.settrace(of_call)
        function(*arguments)

    threading.settrace(of_call)
    # The core's own threads are of a lower level, which `threading` does not see.
    fastpath._start_new_thread = lambda *thread: _thread.start_new_thread(followed, thread)
    for item, following in zip(items, [*items[1:], None], strict=True):
        lines.clear()
        begin = time.monotonic()
        sys.settrace(of_call)  # a test may have taken it away
        failed = fails(item, following)
        sys.settrace(None)
        if not failed:
            seconds[item.nodeid] = time.monotonic() - begin
            for path, line in lines.union(unpickled(copies)):
                tests.setdefault(paths[path], {}).setdefault(line, []).append(item.nodeid)
        copies.write_bytes(b"")
    copies.unlink()
    return Ran(tests, seconds)


def unpickled(path: Path) -> Iterator[tuple[str, int]]:
    with path.open("rb") as file:
        while file.peek(1):
            yield pickle.load(file)


def fails(item: pytest.Item, following: pytest.Item | None) -> bool:
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def failing(fault: Fault, items: list[pytest.Item]) -> str | None:
    """Return the first test that fails with a fault."""
    put_in(fault)
    pairs = zip(items, [*items[1:], None], strict=False)  # without items there is none
    return next((item.nodeid for item, following in pairs if fails(item, following)), None)


def put_in(fault: Fault) -> None:
    """Put a fault into this process. Raises `NotJudged` where nothing takes it."""
    path = ROOT / fault.path
    text = path.read_bytes()
    # Lines that follow keep their numbers, by which functions are found.
    lines = fault.before.count("\n") - fault.after.count("\n")
    after = fault.after.encode() + b"\n" * lines
    text = text[: fault.start] + after + text[fault.end :]
    code = compile(text, str(path), "exec", dont_inherit=True)
    name = module_of(path)
    module = sys.modules.get(name)
    sys.meta_path.insert(0, Finder(name, path, code))  # where it is imported later, or again
    if module is None:
        return
    count = exchange_code(path, code) if in_function(fault) else exchange_values(module, code)
    if not count:
        raise NotJudged("no function, and no plain value of the module, has it")


class Loader(machinery.SourceFileLoader):
    """Loads a module of code that is given."""

    code: CodeType

    def get_code(self, fullname: str) -> CodeType:
        return self.code


class Finder:
    """Finds a module whose code is given."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        self._name, self._path = name, path
        self._loader = Loader(name, str(path))
        self._loader.code = code

    def find_spec(self, name: str, *_: object) -> machinery.ModuleSpec | None:
        if name != self._name:
            return None
        folders = [str(self._path.parent)] if self._path.name == "__init__.py" else None
        return util.spec_from_file_location(
            name, self._path, loader=self._loader, submodule_search_locations=folders
        )


def exchange_code(path: Path, module: CodeType) -> int:
    """Give all functions of a file the code that they have in another version of it."""
    codes = {(code.co_qualname, code.co_firstlineno): code for code in codes_in(module)}
    count = 0
    for function in functions_of(path):
        old = function.__code__
        new = codes.get((old.co_qualname, old.co_firstlineno))
        if new is not None and new != old:
            function.__code__ = new
            count += 1
    return count


def functions_of(path: Path) -> list[FunctionType]:
    functions = (found for found in gc.get_objects() if isinstance(found, FunctionType))
    return [found for found in functions if found.__code__.co_filename == str(path)]


def codes_in(code: CodeType) -> Iterator[CodeType]:
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield value
            yield from codes_in(value)


def exchange_values(module: ModuleType, code: CodeType) -> int:
    """Give a module, and those that imported them, the plain values of another version of it."""
    other = ModuleType(module.__name__)
    names = ("__file__", "__package__", "__spec__", "__loader__", "__path__")
    vars(other).update({name: vars(module)[name] for name in names if name in vars(module)})
    sys.modules[module.__name__] = other
    try:
        exec(code, vars(other))
    finally:
        sys.modules[module.__name__] = module
    return _exchange(module, other, module.__name__)


def _exchange(old: Any, new: Any, module: str) -> int:
    """Exchange the plain values of a module and its classes, and the defaults of its functions."""
    count = 0
    for name, value in list(vars(new).items()):
        was = vars(old).get(name)
        if type(was) is not type(value) or name.startswith("__") or was is value:
            continue
        if isinstance(value, FunctionType):
            defaults = value.__defaults__, value.__kwdefaults__
            if is_plain(defaults) and defaults != (was.__defaults__, was.__kwdefaults__):
                was.__defaults__, was.__kwdefaults__ = defaults
                count += 1
        elif isinstance(value, type):
            count += _exchange(was, value, module) if was.__module__ == module else 0
        elif is_plain(value) and was != value:
            # `from module import NAME` bound the same object to the same name.
            modules = sys.modules.values() if isinstance(old, ModuleType) else ()
            for user in (old, *(found for found in modules if vars(found).get(name) is was)):
                setattr(user, name, value)
            count += 1
    return count


def is_plain(value: object) -> bool:
    """Return whether a value holds no object of a class that stands in the module itself."""
    if isinstance(value, dict):
        return all(is_plain(part) for item in value.items() for part in item)
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(is_plain, value))
    return isinstance(value, _PLAIN)


@cache
def _bodies(path: Path) -> list[tuple[int, int]]:
    """Return where the bodies of the functions of a file begin and end."""
    text = path.read_bytes()
    starts = [0]
    for line in text.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            first = node.body if isinstance(node, ast.Lambda) else node.body[0]
            start = starts[first.lineno - 1] + first.col_offset
            found.append((start, starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)))
    return found


def in_function(fault: Fault) -> bool:
    return any(start <= fault.start < end for start, end in _bodies(ROOT / fault.path))


def edited(done: Judged, checkout: Checkout, limit_s: float) -> Judged:
    """Return what the nearest tests say of a fault that stands in the file."""
    try:
        failed = checkout.judged(done.fault, limit_s)
    except OutOfTime:
        return Judged(done.fault, "not judged", f"edited: took over {limit_s:.0f} s")
    return Judged(done.fault, "noticed", f"edited: {failed}") if failed else done


def in_namespace() -> None:
    """Go on in a namespace of processes, whose first one waits for all that lose their parent."""
    if os.environ.pop("MUTATE_IN_NAMESPACE", None) is None:
        options = () if os.geteuid() == 0 else _OF_NO_ROOT
        command = [*_NAMESPACE, *options, sys.executable, *sys.argv]
        os.execvpe(command[0], command, {**os.environ, "MUTATE_IN_NAMESPACE": "1"})
    assert os.getpid() == 1, "this is no namespace of its own"
    child = os.fork()
    while child:
        ended, status = os.wait()
        if ended == child:
            os._exit(os.waitstatus_to_exitcode(status) & 255)


def tests_for(faults: Sequence[Fault], near: int | None) -> list[str]:
    """Return the files of tests that are nearest to each fault, or all folders of tests."""
    if near is None:
        return [str(path) for pattern in TESTS for path in ROOT.glob(pattern)]
    groups = [tests_of(fault.path, False, fault.line) for fault in faults]
    found = {path for files in groups for path in [*chain.from_iterable(files)][:near]}
    return [str(ROOT / path) for path in sorted(found)]


def run(faults: Sequence[Fault], tests: Sequence[str], budget_s: float) -> list[Judged]:
    """Judge faults by the tests that are not heavy."""
    judge = Judge(faults, budget_s)
    options = ["-q", "-s", "-m", "not heavy", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-o", "timeout_method=signal", "-o", f"timeout={_TEST_LIMIT_S}"]
    options += ["-o", "timeout_func_only=true"]  # the protocol around a test is not run here
    pytest.main([*options, "--rootdir", str(ROOT), *tests], plugins=[judge])
    return judge.done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("tests", nargs="*", help="files and folders; without any, all")
    parser.add_argument("--count", type=int, help="how many faults; without it, all")
    parser.add_argument("--seed", type=int, default=1, help="another one gives other faults")
    parser.add_argument("--only", nargs="*", default=[""], help="what the files begin with")
    parser.add_argument("--near", type=int, metavar="N", help="of each fault the N nearest files")
    parser.add_argument("--budget", type=float, default=8.0, help="seconds of tests for a fault")
    parser.add_argument(
        "--edit", type=float, metavar="S", help="judge the rest in the file, so long"
    )
    options = parser.parse_args()
    in_namespace()
    faults = [fault for only in options.only for fault in all_faults(only)]
    if options.count is not None:
        faults = random.Random(options.seed).sample(faults, min(options.count, len(faults)))
    tests = options.tests or tests_for(faults, options.near)
    done = run(faults, tests, options.budget)
    if options.edit:
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            checkout = Checkout(Path(folder), near=False, coverage=None)
            for number, judged in enumerate(done):
                if judged.mark != "noticed":
                    done[number] = edited(judged, checkout, options.edit)
                    print(done[number], flush=True)
    marks = Counter(judged.mark for judged in done)
    print(", ".join(f"{count} {mark}" for mark, count in marks.most_common()), f"of {len(done)}")
    return 1 if marks["NOT noticed"] else 0


if __name__ == "__main__":
    sys.exit(main())
