"""What a fix does: a typed action, from the parts that it is declared of.

A part that is no command declares what it does (`model.fix`). A program does the same in every
fix, so that what a command changes or removes, and how that is undone, stands here once for each
program, by the command's own words.

Sources: the programs' own manuals; `undo` is the manual's opposite, and None where there is none.
"""

from __future__ import annotations

from probe_core.model.fix import CONFLICTING, Part, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Tell = Callable[[list[str]], "Effect"]

HOST, CONTAINER, POD, SERVICE = "host", "container", "pod", "service"
WINDOWS, FIRMWARE = "Windows", "firmware"
PLACES = (HOST, CONTAINER, POD, SERVICE, WINDOWS, FIRMWARE)
"""Where an action is done."""


class Effect:
    """What one command does: `changes` and `removes` are "KIND NAME", `undo` is a command.

    An `undo` of "" is that of what is only made anew: it needs none of its own. `by_hand` says that
    a person has to go on: it opens an editor.
    """

    __slots__ = ("by_hand", "changes", "reboots", "removes", "undo", "where")

    def __init__(
        self,
        *changes: str,
        removes: Sequence[str] = (),
        undo: str | None = None,
        reboots: bool = False,
        where: str = "",
        by_hand: bool = False,
    ) -> None:
        self.changes = changes
        self.removes = tuple(removes)
        self.undo = undo
        self.reboots = reboots
        self.where = where
        self.by_hand = by_hand


class Action:
    """What one way of a fix does.

    `command` is the line to copy, "" where a person has to do it by hand. `where` is one of
    `PLACES`. `precondition` is the situation in which it helps, which was read from the machine.
    `changes` and `removes` are "KIND NAME": package, module, group, service, parameter (of the
    kernel), variable, file, node, setting. `undo` is None where the opposite is not known.
    """

    __slots__ = (
        "changes",
        "command",
        "precondition",
        "reboots",
        "removes",
        "root",
        "undo",
        "where",
    )

    def __init__(self, way: Sequence[str], where: str, precondition: str = "") -> None:
        parts = [part for part in way if isinstance(part, Part)]
        commands = [part.command for part in parts if part.is_command]
        effects = [effect for part in parts for effect in _effects(part)]
        by_hand = any(p.by_hand for p in parts) or any(effect.by_hand for effect in effects)
        self.command = "" if by_hand else " && ".join(commands)
        self.where = next((effect.where for effect in effects if effect.where), where)
        self.root = any(
            text.startswith("sudo ") for command in commands for text in _split(command)
        )
        self.precondition = precondition
        self.changes = [change for effect in effects for change in effect.changes]
        self.removes = [name for effect in effects for name in effect.removes]
        self.undo = None if by_hand else _undo(effects)
        self.reboots = any(effect.reboots for effect in effects)


def action_of(parts: Sequence[str], where: str, precondition: str = "") -> Action:
    """Return what a fix does: of several ways the first that a command goes, else the first."""
    actions = [Action(way, where, precondition) for way in _ways(parts)]
    return next((action for action in actions if action.command), actions[0])


def _ways(parts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the parts of each way that a fix offers."""
    way: list[str] = []
    for part in parts:
        if isinstance(part, Part) and part.is_other:
            yield way
            way = []
        way.append(part)
    yield way


def parts_of_text(text: str) -> tuple[str, ...]:
    """Return the parts of a fix that a plugin wrote: a command where that is the whole text."""
    command = text[1:-1]
    is_command = text == f"`{command}`" and "`" not in command and does_something(command)
    return (run(command) if is_command else text,)


# How a shell reads a command: only as far as fixes are written.


def _split(text: str, marks: Sequence[str] = ("&&", "||", "|", ";")) -> list[str]:
    """Return the simple commands of a line: what stands in quotes or $(…) is left alone."""
    parts, start, depth, quote, at = [], 0, 0, "", 0
    firsts = {mark[0] for mark in marks}
    while at < len(text):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char in firsts and not depth and (mark := _mark(text, at, marks)):
            parts.append(text[start:at].strip())
            at = start = at + len(mark)
            continue
        at += 1
    return [part for part in (*parts, text[start:].strip()) if part]


def _mark(text: str, at: int, marks: Sequence[str]) -> str:
    return next((mark for mark in marks if text.startswith(mark, at)), "")


def _words(command: str) -> list[str]:
    words = _split(command, (" ",))
    return words[1:] if words[:1] == ["sudo"] else words


def _effects(part: Part) -> Iterator[Effect]:
    if part.is_command:
        yield from _of_commands(part.command)
    else:
        yield Effect(*part.changes, removes=part.removes, reboots=part.reboots, where=part.where)


def _of_commands(text: str) -> Iterator[Effect]:
    for command in _split(text):
        words = _words(command)
        tell = PROGRAMS.get(words[0]) if words else None
        if tell is not None:
            yield tell(words[1:])


def does_something(text: str) -> bool:
    """Return whether a line for a shell changes something, as far as its programs are known."""
    return any(effect.changes or effect.removes for effect in _of_commands(text))


def _undo(effects: Sequence[Effect]) -> str | None:
    """Return the opposite of all that is done, in the opposite order; None where a part has none.

    What is only made anew (an initramfs, the boot loader's file) is made again behind it.
    """
    undone = [effect for effect in effects if effect.changes or effect.removes]
    if any(effect.undo is None for effect in undone):
        return None
    texts = dict.fromkeys(effect.undo for effect in reversed(undone) if effect.undo)
    return " && ".join(texts) or None


# What each program does.


def _operands(words: Sequence[str]) -> list[str]:
    return [word for word in words if not word.startswith("-")]


def _values(words: Sequence[str], option: str) -> list[str]:
    """Return the values of an option that is written "--option=VALUE"."""
    return [word.partition("=")[2].strip("\"'") for word in words if word.startswith(f"{option}=")]


def _of_kind(kind: str, names: Sequence[str]) -> list[str]:
    return [f"{kind} {name}" for name in names]


def _installer(install: Sequence[str], remove: Sequence[str], undo: str, redo: str) -> Tell:
    """Return what a package manager does, by its words for installing and removing."""

    def tell(words: list[str]) -> Effect:
        is_option = bool(words) and words[0].startswith("-") and words[0] in (*install, *remove)
        verb = words[0] if is_option else next(iter(_operands(words)), "")
        names = _operands(words)[0 if is_option else 1 :]
        packages, listed = _of_kind("package", names), " ".join(names)
        if verb in remove:
            return Effect(removes=packages, undo=f"{redo} {listed}")
        gone = (CONFLICTING,) if "--allowerasing" in words else ()
        if verb in install and names:
            # What was there before, only the package manager knows.
            is_other = gone or not _AGAIN.isdisjoint(words)
            return Effect(*packages, removes=gone, undo=None if is_other else f"{undo} {listed}")
        if verb == "upgrade" and names:
            return Effect(*packages)
        # Else an upgrade of all, or a change of a module's stream.
        is_look = verb in _LOOKS
        return Effect() if is_look else Effect("packages of the system", removes=gone)

    return tell


_AGAIN = {"--reinstall", "reinstall", "--force"}
"""Words with which a package manager installs what is there."""

_LOOKS = ("", "info", "list", "policy", "search", "show", "status", "-Q", "-Ss")
"""Words with which a package manager changes nothing."""


def _apt(words: list[str]) -> Effect:
    tell = _installer(("install",), ("purge", "remove"), "sudo apt remove", "sudo apt install")
    if "-t" in words:
        at = words.index("-t")
        words = words[:at] + words[at + 2 :]
    return tell(words)


def _ostree(words: list[str]) -> Effect:
    if words[:1] == ["kargs"]:
        return _parameters(words, "--append", "--delete", "sudo rpm-ostree kargs")
    tell = _installer(("install",), ("uninstall",), "sudo rpm-ostree uninstall", "")
    return tell(words)


def _transactional(words: list[str]) -> Effect:
    base = "sudo transactional-update pkg"
    tell = _installer(("install",), ("remove",), f"{base} remove", f"{base} install")
    return tell(words[1:] if words[:1] == ["pkg"] else words)


def _grubby(words: list[str]) -> Effect:
    base = "sudo grubby --update-kernel=ALL"
    return _parameters(words, "--args", "--remove-args", base)


def _parameters(words: Sequence[str], add: str, remove: str, base: str) -> Effect:
    added, removed = _values(words, add), _values(words, remove)
    opposite = [f'{remove}="{text}"' for text in added] + [f'{add}="{text}"' for text in removed]
    return Effect(
        *(f"parameter {name}" for text in added for name in text.split()),
        removes=_of_kind("parameter", removed),
        undo=f"{base} {' '.join(opposite)}",
    )


def _modprobe(words: list[str]) -> Effect:
    names = _operands(words)
    listed = " ".join(names)
    if "-r" in words:
        return Effect(removes=_of_kind("module", names), undo=f"sudo modprobe -a {listed}")
    return Effect(*_of_kind("module", names), undo=f"sudo modprobe -r {listed}")


def _rmmod(words: list[str]) -> Effect:
    # Loading them again is what follows in each line.
    return Effect(removes=_of_kind("module", words), undo=f"sudo modprobe -a {' '.join(words)}")


def _usermod(words: list[str]) -> Effect:
    groups = words[1].split(",") if len(words) > 1 else []
    undo = " && ".join(f"sudo gpasswd -d $USER {group}" for group in groups)
    return Effect(*_of_kind("group", groups), undo=undo)


def _systemctl(words: list[str]) -> Effect:
    operands = _operands(words)
    verb, units = "".join(operands[:1]), operands[1:]
    named = " ".join(units)
    services = _of_kind("service", units)
    if verb == "edit":
        undo = f"sudo systemctl revert {named}"
        return Effect(*services, undo=undo, where=SERVICE, by_hand=True)
    opposite = {"enable": "disable --now", "start": "stop"}.get(verb)
    if opposite is not None:
        return Effect(*services, undo=f"sudo systemctl {opposite} {named}")
    return Effect(*services) if verb == "restart" else Effect()


def _setsebool(words: list[str]) -> Effect:
    operands = _operands(words)
    if len(operands) != 2:
        return Effect()
    name, value = operands
    opposite = "off" if value in ("on", "1") else "on"
    return Effect(f"setting {name}", undo=f"sudo setsebool -P {name} {opposite}")


def _modprobe_of_nvidia(words: list[str]) -> Effect:
    own = ["/dev/nvidia-uvm"] if "-u" in words else []
    first = ["/dev/nvidiactl", "/dev/nvidia0"] if "-c" in words else []
    modules = ["module nvidia_uvm"] if own else []
    return Effect(*modules, *_of_kind("node", [*own, *first]))


def _nvidia_smi(words: list[str]) -> Effect:
    if "-r" in words or "--gpu-reset" in words:
        return Effect("device")
    if "-c" in words:
        at = words.index("-c")
        prohibited = " ".join(["sudo nvidia-smi", *words[:at], "-c 2"])
        return Effect("setting compute mode", undo=prohibited)
    if any(word.startswith("--compute-mode=") for word in words):
        return Effect("setting compute mode")
    if "-e" in words:
        at = words.index("-e")
        opposite = " ".join(["sudo nvidia-smi", *words[:at], "-e 0"])
        return Effect("setting ECC mode", undo=opposite)
    if "-pl" in words:
        return Effect("setting power limit")
    is_mig = not {"-mig", "-cgi", "-cci", "-dgi", "-dci"}.isdisjoint(words)
    return Effect("setting MIG mode") if is_mig else Effect()


def _nvidia_ctk(words: list[str]) -> Effect:
    if words[:1] == ["config"]:
        return Effect(*_of_kind("setting", _values(words, "--set")))
    files = _values(words, "--output") or ["/dev/char"]
    return Effect(*_of_kind("file", files))


def _made(what: str) -> Tell:
    """Return what makes something anew of what is there: it is undone by itself."""
    return lambda words: Effect(what, undo="")


def _with(verb: str, what: str) -> Tell:
    """Return what changes something by one of its commands alone."""
    return lambda words: Effect(what) if words[:1] == [verb] else Effect()


def _variable(words: list[str]) -> Effect:
    names = [word.partition("=")[0] for word in words]
    # A list of folders had another value before.
    undo = None if any(name.endswith("PATH") for name in names) else f"unset {' '.join(names)}"
    return Effect(*_of_kind("variable", words), undo=undo)


def _file(words: list[str]) -> Effect:
    files = _operands(words)
    if any(path.startswith(("/sys/", "/proc/")) for path in files):
        return Effect(*_of_kind("file", files))  # the kernel's own: what is written is a command
    return Effect(*_of_kind("file", files), undo=f"sudo rm {' '.join(files)}")


def _graphics(undo: str) -> Tell:
    """Return what sets a laptop's graphics mode; `undo` leaves its discrete GPU off again."""
    return lambda words: Effect("setting graphics mode", undo=undo)


def _snap(words: list[str]) -> Effect:
    if words[:1] != ["connect"]:
        return Effect()
    names = words[1:]
    return Effect(*_of_kind("setting", names), undo=f"sudo snap disconnect {' '.join(names)}")


def _flatpak(words: list[str]) -> Effect:
    if words[:1] == ["update"]:
        return Effect("packages of the system")
    if words[:1] != ["override"]:
        return Effect()
    return Effect("setting devices", undo=f"flatpak override --user --reset {words[-1]}")


def _wsl(words: list[str]) -> Effect:
    if words[:1] in (["--set-version"], ["--shutdown"], ["--update"]):
        return Effect("system", where=WINDOWS)
    return Effect(where=WINDOWS)


def _bolt(words: list[str]) -> Effect:
    if words[:1] != ["enroll"]:
        return Effect()
    return Effect("device", undo=f"boltctl forget {words[-1]}")


def _key(words: list[str]) -> Effect:
    files = _operands(words)
    # The key counts once the firmware's own dialogue has enrolled it.
    undo = f"sudo mokutil --delete {' '.join(files)}"
    return Effect(*_of_kind("key", files), undo=undo, reboots=True)


PROGRAMS: dict[str, Tell] = {
    "akmods": _made("modules of the kernel"),
    "amd-smi": _with("set", "setting partition mode"),
    "apk": _installer(("add",), ("del",), "sudo apk del", "sudo apk add"),
    "apt": _apt,
    "boltctl": _bolt,
    "cos-extensions": lambda words: Effect(*_of_kind("package", words[1:])),
    "dkms": _made("modules of the kernel"),
    "dnf": _installer(("install", "reinstall"), ("remove",), "sudo dnf remove", "sudo dnf install"),
    "dracut": _made("initramfs"),
    "emerge": _installer((), (), "", ""),
    "envycontrol": _graphics("sudo envycontrol -s integrated"),
    "export": _variable,
    "flatpak": _flatpak,
    "grub-mkconfig": _made("boot loader"),
    "grub2-mkconfig": _made("boot loader"),
    "grubby": _grubby,
    "incus": lambda words: Effect(*_of_kind("setting", words[-2:-1])),
    "ldconfig": _made("file /etc/ld.so.cache"),
    "mhwd": lambda words: Effect("packages of the system"),
    "mkinitcpio": _made("initramfs"),
    "mkinitfs": _made("initramfs"),
    "modprobe": _modprobe,
    "mokutil": _key,
    "nixos-rebuild": lambda words: Effect(
        "system", undo="sudo nixos-rebuild boot --rollback", reboots=True
    ),
    "nvidia-ctk": _nvidia_ctk,
    "nvidia-modprobe": _modprobe_of_nvidia,
    "nvidia-smi": _nvidia_smi,
    "nvidia-uninstall": lambda words: Effect(removes=["package of NVIDIA's installer"]),
    "pacman": _installer(("-S", "-Syu"), ("-R",), "sudo pacman -R", "sudo pacman -S"),
    "pct": lambda words: Effect(*_of_kind("node", [w for w in words if w.startswith("/dev/")])),
    "prime-select": _graphics("sudo prime-select intel"),
    "proxmox-boot-tool": _made("boot loader"),
    "reboot": lambda words: Effect("running kernel", undo="", reboots=True),
    "rmmod": _rmmod,
    "rpm-ostree": _ostree,
    "setsebool": _setsebool,
    "snap": _snap,
    "sysctl": lambda words: Effect(*_of_kind("setting", [w.partition("=")[0] for w in words])),
    "supergfxctl": _graphics("supergfxctl -m Integrated"),
    "system76-power": _graphics("sudo system76-power graphics integrated"),
    "systemctl": _systemctl,
    "tee": _file,
    "transactional-update": _transactional,
    "ubuntu-drivers": lambda words: Effect("packages of the driver"),
    "unset": lambda words: Effect(removes=_of_kind("variable", words)),
    "update-grub": _made("boot loader"),
    "update-initramfs": _made("initramfs"),
    "usermod": _usermod,
    "wsl": _wsl,
    "zypper": _installer(
        ("install", "in"), ("remove",), "sudo zypper remove", "sudo zypper install"
    ),
}
"""Program to what it does with its arguments. Programs that only look are not here."""
