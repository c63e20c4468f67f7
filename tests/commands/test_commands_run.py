"""A plugin's command runs like a built-in one; what it does wrong is one sentence that names it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import argv, environment, probe
from command_site import SOUND, Site

from probe_core.cli import main, plugin_commands

HEAD = "HELP = 'x'\ndef add_arguments(parser): pass\n"


def status(*arguments: str) -> int:
    """Return the exit status of a command line, argparse's own exits included."""
    try:
        return main(arguments)
    except SystemExit as error:
        return int(error.code or 0)


def test_it_gets_its_arguments_and_a_context(site: Site, capsys: Any) -> None:
    site.install("fry")
    assert main(["fry", "--times", "2", "an", "egg"]) == 0
    assert capsys.readouterr() == ("an egg\nan egg\n", "")


def test_its_help_and_usage_errors_are_those_of_every_command(site: Site, capsys: Any) -> None:
    site.install("fry")
    assert status("fry", "--help") == 0
    out, _ = capsys.readouterr()
    assert out == (
        "Print what it is given.\n\nUsage: probe fry [OPTIONS] [WORDS...]\n\nArguments:\n"
        "  [WORDS...]\n\nOptions:\n      --times TIMES\n"
        "      --color WHEN       auto (default: on a terminal, unless NO_COLOR is set), always or"
        " never\n  -h, --help             this text\n"
    )
    assert status("fry", "--tims", "2") == 2
    err = capsys.readouterr().err
    assert err == "probe fry: no option --tims. Did you mean --times?\n"


def test_it_may_probe(site: Site, tmp_path: Path, capsys: Any) -> None:
    body = """
        from probe_core.commands import Context, add_probe_options
        HELP = "Count devices."
        def add_arguments(parser):
            add_probe_options(parser)
        def run(args, context: Context):
            context.json(len(context.report()["devices"]))
            return 5
    """
    site.install("count", body)
    (tmp_path / "machine" / "proc").mkdir(parents=True)
    assert main(["count", "--machine", str(tmp_path / "machine"), "--only", "cpu"]) == 5
    assert json.loads(capsys.readouterr().out) == 1
    assert main(["count", "--only", "cpuu"]) == 2
    sentence = "probe count: --only cpuu: no such prober. Did you mean cpu?\n"
    assert capsys.readouterr().err == sentence


def test_it_may_sample_by_the_options_of_a_probe(site: Site, capsys: Any) -> None:
    body = """
        from probe_core.commands import Context, add_probe_options
        HELP = "Sample."
        def add_arguments(parser):
            add_probe_options(parser)
        def run(args, context: Context):
            with context.samples(0.1, 1) as rounds:
                context.json([s["device"].partition(":")[0] for s in next(rounds).documents])
            return 0
    """
    site.install("look", body)
    assert main(["look", "--only", "cpu"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"cpu", "node"}
    # Of a distribution that may not run nothing samples.
    assert main(["look", "--allow", "nobody-has-this"]) == 0
    assert "gpu" not in capsys.readouterr().out
    assert main(["look", "--timeout", "soon"]) == 2
    assert "--timeout soon" in capsys.readouterr().err


def test_its_command_error_is_told_as_it_is(site: Site, capsys: Any) -> None:
    body = (
        HEAD
        + "from probe_core.commands import CommandError\n"
        + "def run(args, context): raise CommandError('fry: no pan is free', 3)\n"
    )
    site.install("fry", body)
    assert main(["fry"]) == 3
    assert capsys.readouterr() == ("", "probe fry: no pan is free\n")


BROKEN: dict[str, tuple[str, str]] = {
    "raises when imported": ("1 / 0", "cannot import: ZeroDivisionError: division by zero"),
    "misses a library": (
        "import no_such_library",
        "cannot import: ModuleNotFoundError: No module named 'no_such_library'",
    ),
    "is no Python": ("def", "cannot import: SyntaxError: "),
    "has null bytes": ("\0", "cannot import: "),
    "prints when imported": ("print('hello')", r"printed 'hello\n' when it was imported"),
    "is empty": ("", "has no function 'add_arguments' in x_site_fry"),
    "has no run": (HEAD, "has no function 'run' in x_site_fry"),
    "has no help": (
        "def add_arguments(p): pass\ndef run(a, c): return 0",
        "has no text HELP in x_site_fry",
    ),
    "has a run that is data": (HEAD + "run = 3", "has no function 'run'"),
    "raises in add_arguments": (
        "HELP = 'x'\ndef add_arguments(parser): parser.none\ndef run(a, c): return 0",
        "cannot parse options: AttributeError: 'Parser' object has no attribute 'none'",
    ),
    "takes no arguments": (
        "HELP = 'x'\ndef add_arguments(): pass\ndef run(a, c): return 0",
        "cannot parse options: TypeError: add_arguments() takes 0 positional arguments",
    ),
    "raises in run": (
        HEAD + "def run(args, context):\n    raise RuntimeError('too hot')",
        "cannot run: RuntimeError: too hot (x_site_fry.py, line 4)",
    ),
    "raises an odd error": (
        HEAD + "class Odd(BaseException):\n    def __str__(self): raise ValueError\n"
        "def run(args, context): raise Odd",
        "cannot run: Odd: (its message cannot be printed)",
    ),
    "recurses": (HEAD + "def run(a, c): return run(a, c)", "cannot run: RecursionError: "),
    "cannot open a file": (
        HEAD + "def run(a, c): open('/no/such/file')",
        "cannot run: FileNotFoundError: ",
    ),
    "has a broken pipe of its own": (
        HEAD + "import os\ndef run(a, c):\n    r, w = os.pipe(); os.close(r); os.write(w, b'x')",
        "cannot run: BrokenPipeError: ",
    ),
    "returns nothing": (
        HEAD + "def run(args, context): pass",
        "returned None for an exit status (0 to 255)",
    ),
    "returns true": (HEAD + "def run(args, context): return True", "returned True for an exit"),
    "returns too much": (HEAD + "def run(args, context): return 256", "returned 256 for an exit"),
    "returns something nasty": (
        HEAD + "class Odd:\n    def __repr__(self): return '\\x1b[2J'\n"
        "def run(args, context): return Odd()",
        "returned Odd for an exit status",
    ),
    "says something hostile": (
        HEAD + "def run(args, context): raise ValueError('\\x1b[2J' + 'x' * 5000)",
        "cannot run: ValueError: \ufffd[2Jxxx",
    ),
    "closes standard error": (
        HEAD + "import sys\ndef run(args, context):\n    sys.stderr = None\n    1 / 0",
        "cannot run: ZeroDivisionError",
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_command_is_one_sentence(how: str, site: Site, capsys: Any) -> None:
    body, sentence = BROKEN[how]
    site.install("fry", body)
    assert main(["fry"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("probe: probe-fry 1.2: the command 'fry' ")
    assert sentence in err
    assert err.endswith("; update or remove probe-fry, or report it to its author\n")
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert len(err) < 1500


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("raise SystemExit(7)", 7),
        (HEAD + "import sys\ndef run(args, context): sys.exit(9)", 9),
        (HEAD + "def run(args, context): raise KeyboardInterrupt", 130),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_exits_and_interrupts_are_those_of_every_command(
    body: str, code: int, site: Site, capsys: Any
) -> None:
    site.install("fry", body)
    assert status("fry") == code
    assert capsys.readouterr() == ("", "")


PRINTS = HEAD + "def run(args, context):\n    for _ in range(100_000): print('egg')\n    return 0\n"


@pytest.mark.parametrize("body", [SOUND, PRINTS])
def test_a_reader_that_goes_away_is_no_mistake_of_the_plugin(body: str, site: Site) -> None:
    site.install("fry", body)
    options = ("--times", "100000", "egg") if body == SOUND else ()
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        argv("fry", *options),
        env=environment(site.folder), stdout=write, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_no_mistake_of_the_plugin(site: Site) -> None:
    site.install("fry")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            argv("fry", "--times", "100000", "egg"),
            env=environment(site.folder), stdout=full, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert b"the answer could not be written: No space left on device" in done.stderr


def test_ctrl_c_ends_it_without_a_traceback(site: Site) -> None:
    body = HEAD + "import time\ndef run(args, context):\n    print('on', flush=True)\n"
    site.install("fry", body + "    time.sleep(60)\n")
    with subprocess.Popen(
        argv("fry"), env=environment(site.folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"on\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")


def test_threads_and_exit_handlers_end_as_in_any_program(site: Site) -> None:
    body = """
        import atexit, gc, threading, time
        HELP = "x"
        def add_arguments(parser): pass
        def late():
            time.sleep(0.2)
            print("the thread ended")
        def run(args, context):
            atexit.register(print, "the handler ran")
            threading.Thread(target=late).start()
            context.out(f"collecting: {gc.isenabled()}")
            return 4
    """
    site.install("fry", body)
    done = probe("fry", env=environment(site.folder))
    assert done.stdout == "collecting: True\nthe thread ended\nthe handler ran\n"
    assert (done.returncode, done.stderr) == (4, "")


def test_streams_are_put_back(site: Site, capsys: Any) -> None:
    body = HEAD + "import io, sys\ndef run(args, context):\n    sys.stdout = io.StringIO()\n"
    site.install("fry", body + "    sys.stderr = None\n    return 0\n")
    before = sys.stdout, sys.stderr
    assert main(["fry"]) == 0
    assert (sys.stdout, sys.stderr) == before


def test_a_command_of_ours_that_is_missing_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(plugin_commands, "scan", lambda *_: ([], []))
    for name in ("topology", "partition"):
        assert main([name, "--help"]) == 2
        assert capsys.readouterr().err == (
            f"probe: the command '{name}' comes with probe-cluster, which is not installed:"
            " pip install probe-cluster\n"
        )
    assert main(["topolgy"]) == 2
    assert capsys.readouterr().err == (
        "probe: no command 'topolgy'. Did you mean topology? It comes with probe-cluster, which is"
        " not installed: pip install probe-cluster\n"
    )
    assert main(["zzz"]) == 2
    assert "topology" not in capsys.readouterr().err


def test_a_distribution_that_cannot_be_read_may_be_the_one_that_is_missed(
    site: Site, capsys: Any
) -> None:
    site.register("probe-many", "1", {f"fry{number}": "x_fry" for number in range(65)})
    assert main(["fry7"]) == 2
    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith("probe: probe-many: its commands are left out: entry_points.txt: more")
    assert err[1] == "probe: no command 'fry7'. Run `probe --help` for all commands."


def test_ours_that_are_named_are_there() -> None:
    for name, distribution in plugin_commands.BROUGHT_BY.items():
        commands, problems = plugin_commands.installed_commands({}, name)
        assert problems == []
        assert commands[name].distribution == distribution
        groups = dict.fromkeys(("bench", "check", "mcp", "report", "watch"), "Look")
        groups |= dict.fromkeys(("env", "journal", "since", "will-run"), "Fix")
        assert commands[name].group == groups.get(name, "Clusters")
        assert commands[name].summary


def test_the_closest_name_may_be_a_plugins(site: Site, capsys: Any) -> None:
    site.install("poach", SOUND)
    assert main(["poahc"]) == 2
    assert capsys.readouterr().err == "probe: no command 'poahc'. Did you mean poach?\n"


def test_arguments_of_the_shell_reach_it(site: Site) -> None:
    site.install("fry")
    done = probe("fry", "--", "--times", "x", env=environment(site.folder))
    assert (done.returncode, done.stdout) == (0, "--times x\n")


BRIEF = """
    import gc, os, sys
    from probe_core.commands import Option, add_options
    HELP = "Count."
    OPTIONS = (Option("times", "N", "how often", absent=1, read=int),)
    POSITIONAL = "word"
    BRIEF = {brief}
    def add_arguments(parser):
        parser.add_argument("word", nargs="?")
        add_options(parser, OPTIONS)
    def run(args, context):
        class Late:
            def __del__(self, write=os.write):
                write(1, b"torn down\\n")
        sys.late = Late()
        loaded = "argparse" in sys.modules
        context.out(f"{{args.word}} {{args.times}} {{gc.isenabled()}} {{loaded}}")
        return 3
"""


TABLE = """
    import sys
    from probe_core.commands import Argument, Option
    HELP = "Count."
    ARGUMENTS = (Argument("word", "what"), Option("times", "N", "how often", absent=1, read=int))
    def run(args, context):
        context.out(f"{args.word} {args.times} {args.color} {'argparse' in sys.modules}")
        return 0
"""


def test_a_table_stands_for_add_arguments(site: Site, capsys: Any) -> None:
    site.install("count", TABLE)
    env = environment(site.folder)
    done = probe("count", "egg", "--times", "2", "--color", "never", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "egg 2 never False\n", "")
    assert status("count", "--help") == 0
    assert "Usage: probe count [OPTIONS] WORD\n" in capsys.readouterr().out
    assert status("count") == 2
    assert capsys.readouterr().err == ("probe count: WORD is missing. Run `probe count --help`.\n")


@pytest.mark.parametrize(
    ("brief", "out"), [(True, "egg 2 False False\n"), (False, "egg 2 True False\ntorn down\n")]
)
def test_a_table_of_options_needs_no_argparse_and_brief_no_teardown(
    site: Site, brief: bool, out: str
) -> None:
    site.install("count", BRIEF.format(brief=brief))
    done = probe("count", "egg", "--times", "2", env=environment(site.folder))
    assert (done.returncode, done.stdout, done.stderr) == (3, out, "")


def test_a_wrong_line_of_a_table_is_argparses_to_name(site: Site) -> None:
    site.install("count", BRIEF.format(brief=True))
    done = probe("count", "egg", "--tims", "2", env=environment(site.folder))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "probe count: no option --tims. Did you mean --times?\n"


def test_a_command_called_in_a_process_of_another_leaves_its_collector(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gc

    monkeypatch.setattr(sys, "late", None, raising=False)
    site.install("count", BRIEF.format(brief=True))
    assert main(["count", "egg"]) == 3
    assert gc.isenabled()
