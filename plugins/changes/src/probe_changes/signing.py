"""Signatures of a journal's head, by OpenSSH: a key that people have, and no library.

`ssh-keygen -Y sign` reads standard input here: with a file's name and an old signature beside it,
it asks whether to overwrite, and at the end of its input ends with 0 and nothing signed.
"""

from __future__ import annotations

import subprocess

from probe_changes.chain import digest, line_of
from probe_core.commands import CommandError, replace_file
from probe_core.machine import read_regular, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_changes.chain import Journal
    from probe_changes.store import Store

NAMESPACE = "probe-journal@probe-core"
_BEGIN = b"-----BEGIN SSH SIGNATURE-----"
_WAIT_S = 120
"""Seconds for a person to touch a key or type a passphrase."""


def sign(store: Store, key: str) -> None:
    """Sign the head of the journal with a private key; raises `CommandError` or `OSError`."""
    head = read_regular(store.head_path, 4096)
    result = _ssh_keygen(["-Y", "sign", "-f", key, "-n", NAMESPACE], head)
    if result.returncode != 0 or not result.stdout.startswith(_BEGIN):
        raise CommandError(f"ssh-keygen did not sign: {_words(result)}", 1)
    replace_file(store.signed_path, head, mode=0o600)
    replace_file(store.signature_path, result.stdout, mode=0o600)


def verify_signature(store: Store, signers: str, identity: str) -> str | None:
    """Return why the signature is not the identity's, by its file of allowed signers; None: it is.

    Raises `CommandError` where ssh-keygen cannot be started.
    """
    try:
        signed = read_regular(store.signed_path, 4096)
    except OSError as error:
        return f"{store.signed_path}: {error.strerror or error}"
    arguments = ["-Y", "verify", "-f", signers, "-I", identity, "-n", NAMESPACE]
    result = _ssh_keygen([*arguments, "-s", store.signature_path], signed)
    return None if result.returncode == 0 else f"the signature does not hold: {_words(result)}"


def proven_until(store: Store, journal: Journal) -> tuple[int, str]:
    """Return up to which entry the signed head agrees with the journal, and what does not."""
    fields = text_of(read_regular(store.signed_path, 4096)).split()
    if len(fields) != 3 or not fields[0].isdecimal() or len(fields[0]) > 9:
        return 0, f"{store.signed_path} is no head of a journal"
    count, last, first = int(fields[0]), fields[1], fields[2]
    entry = next((entry for entry in journal.entries if entry["n"] == count), None)
    if entry is None and journal.entries and journal.entries[0]["n"] > count:
        return 0, f"entry {count}, which was signed, is dropped by now: sign again"
    if entry is None:
        return 0, f"entry {count}, which was signed, is gone"
    if entry["kind"] == "anchor" and first != journal.first:
        return 0, f"entry {count}, which was signed, is dropped by now: sign again"
    if digest(line_of(entry)) != last:
        return 0, f"entry {count} is not the one that was signed"
    if first != journal.first and journal.entries[0]["kind"] != "anchor":
        return 0, "the first entry is not the one that was signed"
    return count, ""


def _ssh_keygen(arguments: list[str], content: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["ssh-keygen", *arguments], input=content, capture_output=True, timeout=_WAIT_S
        )
    except FileNotFoundError:
        hint = "install OpenSSH's client (openssh-client)"
        raise CommandError(f"ssh-keygen is not here; {hint}", 1) from None
    except subprocess.TimeoutExpired:
        raise CommandError(f"ssh-keygen did not end within {_WAIT_S} s", 1) from None


def _words(result: subprocess.CompletedProcess[bytes]) -> str:
    text = (result.stderr or result.stdout).decode("utf-8", "replace").strip()
    return text.partition("\n")[0][:200] or f"it ended with {result.returncode}"
