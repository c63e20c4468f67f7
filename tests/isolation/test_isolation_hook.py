"""What is wrong with a plugin's hook is said in a sentence that names it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any

import pytest

from probe_core.api import NotApplicable, Unavailable, not_applicable
from probe_core.isolation import MAX_DEVICES, MAX_FINDINGS
from probe_core.isolation.hook import (
    Answers,
    HookError,
    Origin,
    failure,
    find_hook,
    load_plugin,
)
from probe_core.isolation.run import Run
from probe_core.isolation.serving import find_sampler
from probe_core.wording import INVALID


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
    (WRAPPER, "is a wrapper"),
    (
        "@hookimpl\ndef probe_devices(request, *, a=1): ...\n@hookimpl\ndef probe_devicez(): ...",
        "unknown hook 'probe_devicez' in plugin",
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


def taken(answer: object) -> tuple[object, list[tuple[str, object]]]:
    """Return the end of an answer, and what was sent before."""
    sent: list[tuple[str, object]] = []
    answers = Answers(lambda kind, **fields: sent.extend((kind, one) for one in fields.values()))
    return answers.take(lambda request: answer, None), sent


def generated(*items: object, last: object = None) -> Any:
    yield from items
    return last


def ended(status: str, reason: str | None = None) -> tuple[str, str | None, dict[str, object]]:
    return status, reason, {}


OK, NOTHING = ended("ok"), ended("not_applicable", "it found no devices")
AWAY = ended("not_applicable", "it is away")
HINT = "; return a list, yield devices, or return not_applicable(reason)"
FINDING = {"finding": {"code": "x"}}


class Unreadable:
    def keys(self) -> Any:
        raise RuntimeError("mine")


@pytest.mark.parametrize(
    ("answer", "end", "sent"),
    [
        ([], NOTHING, []),
        (generated(), NOTHING, []),
        ([{"ids": 1}, MappingProxyType({"ids": 2}), 5], OK, [{"ids": 1}, {"ids": 2}, 5]),
        ([FINDING], OK, [{"code": "x"}]),
        (not_applicable("it is away"), AWAY, []),
        (generated(last=not_applicable("it is away")), AWAY, []),
        (generated(not_applicable("it is away"), {"ids": 1}), AWAY, []),
        (generated(FINDING, last=not_applicable("it is away")), AWAY, [{"code": "x"}]),
        (generated({"ids": 1}, last=not_applicable("it is away")), OK, [{"ids": 1}]),
        (NotApplicable(" "), ended("invalid", "not_applicable() needs a reason for people"), []),
        (None, ended("invalid", f"it returned None{HINT}"), []),
        ("text", ended("invalid", f"it returned str{HINT}"), []),
        (b"", ended("invalid", f"it returned bytes{HINT}"), []),
        (7, ended("invalid", f"it returned int{HINT}"), []),
        (list, ended("invalid", f"it returned type{HINT}"), []),
        (
            {"ids": 1},
            ended("invalid", f"it returned one mapping; put devices in a list: {HINT[2:]}"),
            [],
        ),
        ([Unreadable()], OK, [{INVALID: "RuntimeError while reading a Unreadable"}]),
    ],
)
def test_what_an_answer_means(answer: object, end: object, sent: list[object]) -> None:
    found, items = taken(answer)
    assert (found, [item for _, item in items]) == (end, sent)
    assert all((kind == "finding") is (item == {"code": "x"}) for kind, item in items)


def test_devices_and_findings_of_an_answer_are_bounded() -> None:
    end, sent = taken([{"ids": 1}] * MAX_DEVICES)
    assert (end, len(sent)) == (OK, MAX_DEVICES)
    end, sent = taken([{"ids": 1}] * (MAX_DEVICES + 2))
    assert end == ended("resource", f"more than {MAX_DEVICES} devices")
    assert len(sent) == MAX_DEVICES
    end, sent = taken([FINDING] * (MAX_FINDINGS + 2))  # what there is too much of is left out
    assert (end, len(sent)) == (OK, MAX_FINDINGS)


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (Unavailable("gone", code="lost", fix="mend"), ("gone", {"code": "lost", "fix": "mend"})),
        (Unavailable(""), ("no reason given", {"code": "unavailable", "fix": None})),
        (Unavailable(5, code=None, fix=[]), ("int", {"code": None, "fix": "list"})),  # type: ignore[arg-type]
    ],
)
def test_what_is_unavailable_says_why(error: Unavailable, end: object) -> None:
    status, *rest = failure(error)
    assert (status, tuple(rest)) == ("unavailable", end)


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (MemoryError(), ended("resource", "it ran out of memory")),
        (SystemExit(3), ended("call_error", "it called sys.exit(3)")),
        (ValueError("x"), ended("call_error", "ValueError: x")),
    ],
)
def test_what_a_prober_raises_is_its_end(error: BaseException, end: object) -> None:
    assert failure(error) == end


class Sampler:
    """A sampler whose `sample` takes what `function` takes."""

    def __init__(self, function: Any) -> None:
        self.sample, self.closed = function, 0

    def close(self) -> None:
        self.closed += 1


def opened(returned: object) -> Any:
    source = "@hookimpl\ndef open_sampler(request): return request.returned"
    opens = find_sampler(plugin(source), "acme")
    assert opens is not None
    request: Any = SimpleNamespace(returned=returned, kept=1)
    return opens(request)


def test_a_sampler_is_asked_with_the_request_that_it_was_opened_with() -> None:
    for function, is_given in (
        (lambda request: request, True),
        (lambda *any: any[0] if any else None, True),
        (lambda request=None: request, True),
        (lambda: None, False),
    ):
        sampler = Sampler(function)
        own = opened(sampler)
        now = SimpleNamespace(asleep=("a",), avoid=("b",), deadline_s=2.0, round=7)
        given = own.sample(now)
        assert (given is not None) is is_given
        if given is not None:
            assert (given.kept, given.returned) == (1, sampler)
            assert vars(now).items() <= vars(given).items()
        own.close()
        assert sampler.closed == 1
    built_in = opened(SimpleNamespace(sample=bool))  # no function of Python, and no close
    assert built_in.sample(SimpleNamespace(asleep=(), avoid=(), deadline_s=2.0, round=1)) is True
    assert built_in.close() is None


@pytest.mark.parametrize(
    ("returned", "kind"), [(Sampler, "the class itself"), (None, "NoneType"), ([], "list")]
)
def test_what_is_no_sampler_is_named(returned: object, kind: str) -> None:
    with pytest.raises(HookError) as raised:
        opened(returned)
    assert str(raised.value) == (
        f"open_sampler returned {kind};"
        " return an object with sample() and close(), or not_applicable(reason)"
    )


def test_a_sampler_by_the_old_hook_and_none() -> None:
    old = plugin("@hookimpl\ndef sample_devices(request): return [request]\nsample_close = 5")
    opens: Any = find_sampler(old, "acme")
    own = opens("the first request")
    assert own.sample("now") == ["now"]
    own.close()
    away = opened(not_applicable("it is away"))
    assert (type(away), away.reason) == (NotApplicable, "it is away")
    assert find_sampler(plugin(GOOD[0]), "acme") is None


def test_a_plugin_is_loaded_from_its_own_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("early", "own"):
        for name in ("acme_one.py", "acme_two/part.py"):
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"where = {folder!r}")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "early"), *sys.path])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    own = str(tmp_path / "own")
    for target, name, attribute in (
        ("acme_one:where", "acme_one", None),
        ("acme_two.part", "acme_two", "where"),
    ):
        finder = Origin(target, own)
        assert finder.find_spec("acme_else") is None
        assert finder.find_spec(name, path=[own]) is None
        monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
        found = load_plugin(target)
        assert (getattr(found, attribute) if attribute else found) == "own"
