"""What is wrong with a plugin's hook is said in a sentence that names it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from probe_core.isolation.hook import HookError, find_hook
from probe_core.isolation.run import Run


def plugin(source: str) -> ModuleType:
    module = ModuleType("acme")
    exec("import functools\nfrom probe_core.api import hookimpl\n" + source, module.__dict__)
    return module


GOOD = [
    "@hookimpl\ndef probe_devices(request): return request",
    "@hookimpl\ndef probe_devices(request, retries=3): return request",
    "@hookimpl\ndef probe_devices(request, *, retries=3): return request",
    # A decorator that hides the signature but keeps __wrapped__, as functools.wraps does.
    """
def twice(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs): return f(*args, **kwargs)
    return wrapper
@hookimpl
@twice
def probe_devices(request): return request
""",
    """
import pluggy
@pluggy.HookimplMarker("probe_core")
def probe_devices(request): return request
""",
]


@pytest.mark.parametrize("source", GOOD)
def test_hooks_that_take_the_request(source: str) -> None:
    assert find_hook(plugin(source), "acme")("the request") == "the request"


def test_a_hook_may_take_nothing() -> None:
    assert find_hook(plugin("@hookimpl\ndef probe_devices(): return 1"), "acme")("request") == 1


def test_a_class_is_instantiated() -> None:
    source = "class P:\n  @hookimpl\n  def probe_devices(self, request): return request"
    assert find_hook(plugin(source).P, "acme:P")("r") == "r"


WRAPPER = """
import pluggy
@pluggy.HookimplMarker("probe_core")(hookwrapper=True)
def probe_devices(request): yield
"""
BAD = [
    ("", "acme has no probe_devices: it needs a function of that name"),
    ("@hookimpl\ndef probe_device(request): ...", "'probe_device' is marked as a hook, but"),
    ("probe_devices = 5", "probe_devices of acme is a int, not a function"),
    ("def probe_devices(request): ...", "lacks the @hookimpl mark"),
    ("@hookimpl\ndef probe_devices(requst): ...", "requst"),
    ("@hookimpl\ndef probe_devices(request, more): ...", "more"),
    (
        "class C:\n  def __call__(self, request): ...\nprobe_devices = hookimpl(C())",
        "no plain function",
    ),
    (
        WRAPPER,
        "is a wrapper",
    ),
]


@pytest.mark.parametrize(("source", "sentence"), BAD)
def test_each_mistake_has_its_sentence(source: str, sentence: str) -> None:
    with pytest.raises(HookError) as caught:
        find_hook(plugin(source), "acme")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


LOADS = [
    ("import no_such_module_at_all", "ModuleNotFoundError: No module named 'no_such_module"),
    ("import ctypes; ctypes.CDLL('libno-such.so.9')", "OSError: libno-such.so.9"),
    ("def broken(:", "SyntaxError"),
    ("raise SystemExit('bye')", "SystemExit: bye"),
    ("import x_x; x_x.thing", "AttributeError"),
    ("from x_x import later\nlater = 1", "ImportError: cannot import name 'later'"),
    ("", "has no probe_devices"),
]


@pytest.mark.parametrize(("source", "reason"), LOADS)
def test_what_fails_on_import_is_a_load_error(
    run_source: Callable[..., Run], source: str, reason: str
) -> None:
    run = run_source(source)
    assert run.status == "load_error"
    assert reason in (run.reason or "")


def test_a_missing_module_and_a_missing_attribute(
    make_prober: Callable[..., object], run_source: Callable[..., Run]
) -> None:
    from probe_core.isolation.launch import run_probers
    from probe_core.machine import Machine
    from probe_core.registry.prober import Prober

    make_prober("class Sub: pass", name="there")
    missing, lacks = run_probers(
        [Prober("a", "x_nowhere.sub"), Prober("b", "x_there:Other.part")], Machine(), ()
    )
    assert missing.status == "load_error"
    assert missing.reason == (
        "importing x_nowhere.sub failed: ModuleNotFoundError: No module named 'x_nowhere'"
    )
    assert lacks.status == "load_error"
    assert "AttributeError: module 'x_there' has no attribute 'Other'" in (lacks.reason or "")
