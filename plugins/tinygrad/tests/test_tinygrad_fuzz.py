"""Whatever the environment says, it is known what tinygrad would take; see tests/fuzz."""

from __future__ import annotations

from foreign import CHANCES, Chance
from hypothesis import given

from probe_tinygrad.choice import choose, named, parse_targets, safe_targets
from probe_tinygrad.session import child_environ

TOKENS = "KFD:0,1+AMD NVK+NV CPU:LLVM AMD NV CPU 0 1 true : + ; CUDA:1 PCI+AMD".split()
ORDER = ["NV", "AMD", "CL", "CPU"]


@given(CHANCES)
def test_targets(chance: Chance) -> None:
    value = chance.words(TOKENS, chance.choice(["", ";"]))
    try:
        targets = parse_targets(value)
    except ValueError:
        return
    bound, refused = safe_targets(targets)
    assert "KFD" in bound
    assert set(refused) <= {"AMD", "NV"}


@given(CHANCES)
def test_choices(chance: Chance) -> None:
    names = chance.sample(["DEV", "DEBUG", *ORDER], 3)
    environ = {name: chance.words(TOKENS, chance.choice(["", ";"])) for name in names}
    about = {"style": chance.choice(["targets", "names", "flags"]), "order": ORDER}
    about |= {"backends": ORDER, "numbers": ["DEBUG"]}
    choice = choose(about, {"CPU": {"opens": True}}, environ)
    assert choice.backend or choice.broken
    assert all(finding["finding"]["why"] for finding in choice.findings())
    assert all(name for name in named(environ))
    child_environ(environ, "/nowhere", None)
