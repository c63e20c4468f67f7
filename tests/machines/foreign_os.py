"""Takes from this interpreter what Windows or macOS lack: modules, functions, constants.

By the lines "Availability" of the Python 3.11 to 3.15 library reference, of os, signal, socket,
select, time, and of the modules that exist on Unix alone. The standard library is imported before,
as it is here: it branches by itself on each system. What is imported later sees what is left.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

UNIX_MODULES = (
    "fcntl grp pwd pty resource syslog termios tty posix readline curses crypt nis spwd"
    " _posixsubprocess _posixshmem"
).split()

NOT_ON_WINDOWS = {
    "os": (
        "O_CLOEXEC O_NONBLOCK O_NOFOLLOW O_DIRECTORY O_NOCTTY O_SYNC O_DSYNC O_ASYNC O_NDELAY"
        " O_PATH O_TMPFILE O_DIRECT O_NOATIME SEEK_DATA SEEK_HOLE PRIO_PROCESS PRIO_PGRP PRIO_USER"
        " RTLD_LAZY RTLD_NOW RTLD_GLOBAL RTLD_LOCAL RTLD_NODELETE RTLD_NOLOAD RTLD_DEEPBIND"
        " CLD_CONTINUED CLD_DUMPED CLD_EXITED CLD_KILLED CLD_STOPPED CLD_TRAPPED P_ALL P_PID P_PGID"
        " P_PIDFD POSIX_SPAWN_OPEN POSIX_SPAWN_CLOSE POSIX_SPAWN_DUP2 F_LOCK F_TLOCK F_ULOCK F_TEST"
        " GRND_NONBLOCK GRND_RANDOM SCHED_OTHER SCHED_BATCH SCHED_IDLE SCHED_FIFO SCHED_RR"
        " SCHED_RESET_ON_FORK NGROUPS_MAX EX_OK EX_USAGE EX_NOINPUT EX_UNAVAILABLE EX_SOFTWARE"
        " EX_OSERR EX_OSFILE EX_CANTCREAT EX_IOERR EX_TEMPFAIL EX_PROTOCOL EX_NOPERM EX_CONFIG"
        " XATTR_CREATE XATTR_REPLACE XATTR_SIZE_MAX"
        " WNOHANG WUNTRACED WCONTINUED WEXITED WSTOPPED WNOWAIT WCOREDUMP WIFCONTINUED WIFSTOPPED"
        " WIFSIGNALED WIFEXITED WEXITSTATUS WSTOPSIG WTERMSIG sched_param uname_result"
        " chown chroot confstr confstr_names copy_file_range ctermid environb eventfd eventfd_read"
        " eventfd_write fchdir fchmod fchown fdatasync fork forkpty fpathconf fstatvfs getegid"
        " getenvb geteuid getgid getgrouplist getgroups getloadavg getpgid getpgrp getpriority"
        " getrandom getresgid getresuid getsid getuid getxattr initgroups killpg lchmod lchown"
        " listxattr lockf login_tty major makedev memfd_create minor mkfifo mknod nice openpty"
        " pathconf pathconf_names pidfd_open pipe2 posix_fadvise posix_fallocate posix_openpt"
        " posix_spawn posix_spawnp pread preadv process_cpu_count pwrite pwritev readv"
        " register_at_fork removexattr sched_get_priority_max sched_get_priority_min"
        " sched_getaffinity sched_getparam sched_getscheduler sched_rr_get_interval"
        " sched_setaffinity sched_setparam sched_setscheduler sched_yield sendfile setegid seteuid"
        " setgid setgroups setns setpgid setpriority setregid setresgid setresuid setreuid setsid"
        " setuid setxattr splice statvfs sync sysconf sysconf_names tcgetpgrp tcsetpgrp"
        " timerfd_create ttyname uname unshare wait wait3 wait4 waitid waitid_result writev"
        " chflags lchflags get_blocking set_blocking spawnlp spawnlpe spawnvp spawnvpe"
    ).split(),
    "signal": (
        "SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGHUP SIGIO SIGIOT SIGKILL SIGPIPE SIGPOLL SIGPROF"
        " SIGPWR SIGQUIT SIGRTMAX SIGRTMIN SIGSTKFLT SIGSTOP SIGSYS SIGTRAP SIGTSTP SIGTTIN SIGTTOU"
        " SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIG_BLOCK SIG_UNBLOCK"
        " SIG_SETMASK ITIMER_REAL ITIMER_VIRTUAL ITIMER_PROF alarm getitimer setitimer pause"
        " siginterrupt pthread_kill pthread_sigmask sigpending sigwait sigwaitinfo sigtimedwait"
        " pidfd_send_signal ItimerError Sigmasks struct_siginfo"
    ).split(),
    "socket": (
        "AF_UNIX AF_NETLINK AF_PACKET AF_VSOCK AF_ALG AF_CAN AF_TIPC CMSG_LEN CMSG_SPACE"
        " SCM_RIGHTS SCM_CREDENTIALS SO_PEERCRED SO_PASSCRED MSG_CMSG_CLOEXEC MSG_NOSIGNAL"
        " SOCK_CLOEXEC SOCK_NONBLOCK send_fds recv_fds if_nameindex_ sethostname"
    ).split(),
    "select": (
        "poll epoll kqueue kevent devpoll PIPE_BUF POLLIN POLLOUT POLLERR POLLHUP POLLNVAL POLLPRI"
        " EPOLLIN EPOLLOUT EPOLLERR EPOLLHUP EPOLL_CLOEXEC"
    ).split(),
    "time": (
        "clock_gettime clock_gettime_ns clock_getres clock_settime clock_settime_ns"
        " pthread_getcpuclockid tzset CLOCK_MONOTONIC CLOCK_MONOTONIC_RAW CLOCK_REALTIME"
        " CLOCK_PROCESS_CPUTIME_ID CLOCK_THREAD_CPUTIME_ID CLOCK_BOOTTIME CLOCK_TAI"
    ).split(),
}
"""Names that a module lacks on Windows."""

NOT_ON_MACOS = {
    "os": (
        "O_PATH O_TMPFILE O_DIRECT O_NOATIME GRND_NONBLOCK GRND_RANDOM P_PIDFD XATTR_CREATE"
        " XATTR_REPLACE XATTR_SIZE_MAX SCHED_BATCH SCHED_IDLE SCHED_RESET_ON_FORK sched_param"
        " copy_file_range eventfd eventfd_read eventfd_write fdatasync getrandom getresgid"
        " getresuid getxattr listxattr memfd_create pidfd_open pipe2 posix_fadvise posix_fallocate"
        " removexattr sched_getaffinity sched_getparam sched_getscheduler sched_rr_get_interval"
        " sched_setaffinity sched_setparam sched_setscheduler setns setresgid setresuid setxattr"
        " splice timerfd_create unshare waitid waitid_result"
    ).split(),
    "signal": (
        "SIGCLD SIGPOLL SIGPWR SIGRTMAX SIGRTMIN SIGSTKFLT pidfd_send_signal sigtimedwait"
        " sigwaitinfo struct_siginfo"
    ).split(),
    "socket": (
        "AF_NETLINK AF_PACKET AF_VSOCK AF_ALG AF_CAN AF_TIPC SCM_CREDENTIALS SO_PEERCRED"
        " SO_PASSCRED MSG_CMSG_CLOEXEC MSG_NOSIGNAL SOCK_CLOEXEC SOCK_NONBLOCK sethostname"
    ).split(),
    "select": "epoll devpoll EPOLLIN EPOLLOUT EPOLLERR EPOLLHUP EPOLL_CLOEXEC".split(),
    "time": "CLOCK_BOOTTIME CLOCK_TAI pthread_getcpuclockid".split(),
}
"""Names that a module lacks on macOS."""

SYSTEMS = {
    "windows": ("win32", "nt", NOT_ON_WINDOWS, UNIX_MODULES),
    "macos": ("darwin", "posix", NOT_ON_MACOS, ["nis", "spwd", "ossaudiodev"]),
}

# All that ours and the libraries below import: it has decided already on which system it is.
_STANDARD = (
    "argparse ast asyncio base64 bisect bz2 calendar codecs collections concurrent.futures"
    " contextlib copy csv ctypes ctypes.util dataclasses datetime decimal difflib email.parser"
    " email.message encodings.idna enum errno faulthandler fnmatch fractions functools gc getpass"
    " gettext gzip hashlib heapq html http.client importlib.metadata importlib.resources inspect io"
    " ipaddress itertools json json.decoder keyword linecache locale logging lzma marshal"
    " mimetypes multiprocessing numbers opcode operator pathlib pickle pkgutil platform plistlib"
    " pprint queue random re runpy sched secrets select selectors shlex shutil signal site socket"
    " ssl stat statistics string struct subprocess sysconfig tarfile tempfile textwrap threading"
    " time timeit token tokenize tomllib traceback types typing unicodedata unittest urllib.parse"
    " urllib.request uuid warnings weakref xml.etree.ElementTree zipfile zlib zoneinfo"
    " attr attr.validators attrs pluggy psutil"
).split()


# What a prober's process does without, and takes most of the time. What branches by the system
# cannot be imported there after all: the prober's outcome would say so.
_OF_PARENTS = frozenset(
    "asyncio attr attr.validators attrs calendar email.message email.parser html http.client"
    " mimetypes multiprocessing plistlib pluggy ssl tarfile unittest urllib.request"
    " xml.etree.ElementTree zoneinfo".split()
)
OF_PROBERS = tuple(name for name in _STANDARD if name not in _OF_PARENTS)


class _Partial(ModuleType):
    """A module without what the other system lacks."""

    def __init__(self, module: ModuleType, absent: frozenset[str], own: dict[str, object]) -> None:
        super().__init__(module.__name__)
        self.__dict__["_module"] = module
        self.__dict__["_absent"] = absent
        self.__dict__.update(own)

    def __getattr__(self, name: str) -> object:
        if name in self.__dict__["_absent"]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self.__dict__["_module"], name)


def become(system: str, before: Iterable[str] = _STANDARD) -> None:
    """Make this process one on `windows` or `macos`, as far as Python code can tell.

    What it imports `before` has decided that it is on this system.
    """
    sys_platform, os_name, absent, modules = SYSTEMS[system]
    for name in before:
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    if "asyncio" in sys.modules:  # the first loop decides on which system it is
        sys.modules["asyncio"].new_event_loop().close()
    for name in modules:
        sys.modules[name] = None  # type: ignore[assignment]  # as for a module that is not there
    for name, names in absent.items():
        own: dict[str, object] = {"name": os_name} if name == "os" else {}
        sys.modules[name] = _Partial(sys.modules[name], frozenset(names), own)
    for alias, name in {"_signal": "signal", "_socket": "socket"}.items():
        if alias in sys.modules:
            names = absent[name]
            sys.modules[alias] = _Partial(sys.modules[alias], frozenset(names), {})
    sys.platform = sys_platform
    for forgotten in [name for name in sys.modules if name.partition(".")[0].startswith("probe_")]:
        del sys.modules[forgotten]


def interpreter(folder: Path, system: str) -> str:
    """Write an interpreter whose programs run on `system`, for the processes that we start."""
    prelude = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r});"
        f" sys.path[1:1] = {[p for p in sys.path if p]!r}; import foreign_os;"
        f" foreign_os.become({system!r}, foreign_os.OF_PROBERS); del sys.path[0]\n"
    )
    file = folder / f"python-{system}"
    file.write_text(
        f"#!{sys.executable} -IS\nimport os, sys\n"
        f"arguments = sys.argv[1:]\nat = arguments.index('-c') + 1\n"
        f"arguments[at] = {prelude!r} + arguments[at]\n"
        f"os.execv({sys.executable!r}, [{sys.executable!r}, *arguments])\n"
    )
    file.chmod(0o755)
    return str(file)
