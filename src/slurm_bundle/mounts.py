"""Turns a mount such as `/data:/data:ro` into its parts, and refuses what pyxis would refuse or silently ignore.

Facts are those measured with pyxis 0.24 and enroot 4.1: nothing can be escaped, and a flag that is not known is
taken without a word and mounts read-write.
"""

import posixpath
import re
import unicodedata
from dataclasses import dataclass

# Sources that are no place on the host.
SPECIAL_SOURCES = ("tmpfs", "umount")

# What enroot knows (its enroot-mount), by the names of mount(8); `x-create` takes a value.
FLAGS = frozenset(
    {"ro", "rw", "suid", "nosuid", "dev", "nodev", "exec", "noexec", "sync", "async", "dirsync", "mand", "nomand"}
    | {"atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime", "strictatime", "nostrictatime"}
    | {"private", "rprivate", "slave", "rslave", "shared", "rshared", "unbindable", "runbindable", "bind", "rbind"}
    | {"lazytime", "nolazytime", "silent", "loud", "nofail", "x-move", "x-detach"}
)
VALUED_FLAG = re.compile(r"(?:x-create=(?:dir|file|auto)|size=[0-9]+[kmgKMG%]?|mode=[0-7]{3,4})")

MEANT = {"readonly": "ro", "read-only": "ro", "readwrite": "rw", "read-write": "rw", "z": "", "cached": ""}
# enroot reads its list of mounts as bash reads a text in double quotes.
UNSAFE = re.compile(r"[\"`$]")


@dataclass(frozen=True)
class Mount:
    """A place of the host and where it is seen inside the container.

    `source` is absolute, begins with `./` or `~` (resolved on the cluster), or is `tmpfs` or `umount`. `target` is
    absolute, or equal to a source that begins with `~`.
    """

    source: str
    target: str
    flags: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The form that `--container-mounts` takes."""
        return ":".join((self.source, self.target, "+".join(self.flags)) if self.flags else (self.source, self.target))


def parse_mount(text: str) -> Mount:
    """Read `SRC`, `SRC:DST` or `SRC:DST:FLAGS`; a bare SRC is seen at the same path inside.

    Raises ValueError with the reason and the way out.
    """
    if not text.strip():
        raise ValueError(f"{text!r} is empty; give SRC:DST such as /data:/data:ro")
    check_characters(text)
    source, *others = text.split(":")
    if len(others) > 2:
        raise ValueError(
            f"{text!r} has more than two colons; give SRC:DST:FLAGS (a path with a colon cannot be mounted)"
        )
    check_source(source, text)
    if not others:
        if source in SPECIAL_SOURCES or source.startswith("."):
            raise ValueError(f"{text!r} has no target; write {source}:/path/inside")
        return Mount(source, source)
    check_target(others[0], text)
    return Mount(source, others[0], parse_flags(others[1], text) if len(others) == 2 else ())


def covers(mount: Mount, path: str) -> bool:
    """Say whether `path` is, through this mount, the same place inside the container as on the host."""
    source, target, wanted = (posixpath.normpath(part) for part in (mount.source, mount.target, path))
    if mount.source in SPECIAL_SOURCES or source != target:
        return False
    return wanted == source or wanted.startswith(source.rstrip("/") + "/")


def mount_remarks(mount: Mount) -> tuple[str, ...]:
    """Give what a valid mount's user should know."""
    if " " in mount.source + mount.target:
        return (f"{str(mount)!r} has a space in a path, which pyxis takes only from 2026-04 on",)
    return ()


def check_characters(text: str) -> None:
    if any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in text):
        raise ValueError(f"{text!r} has a control character; take it out")
    if "," in text:
        if re.search(r":[^:,]*:[^:/]*,", text):
            raise ValueError(f"{text!r}: flags are joined by '+'; write {text.replace(',', '+')!r}")
        raise ValueError(
            f"{text!r} has a comma, which separates mounts and cannot be escaped; mount a path without one"
        )
    unsafe = UNSAFE.search(text)
    if unsafe:
        way_out = "write ~/ for the home folder, or the full path" if unsafe[0] == "$" else "mount a path without it"
        raise ValueError(f"{text!r} has the character {unsafe[0]!r}, which pyxis does not carry; {way_out}")


def check_source(source: str, text: str) -> None:
    if source != source.strip():
        raise ValueError(f"{text!r} has a space at the edge of the source; take it out")
    if source in SPECIAL_SOURCES or source.startswith(("/", "./", "~/")) or source == "~":
        return
    if source.startswith("~"):
        raise ValueError(f"{text!r} names another user's home; write the full path")
    if not source:
        raise ValueError(f"{text!r} has no source; give SRC:DST such as /data:/data:ro")
    raise ValueError(f"{text!r}: the source is relative; write ./{source.removeprefix('./')} or the full path")


def check_target(target: str, text: str) -> None:
    if target != target.strip():
        raise ValueError(f"{text!r} has a space at the edge of the target; take it out")
    if not target:
        raise ValueError(f"{text!r} has no target; give SRC:DST such as /data:/data, or SRC alone for the same path")
    if not target.startswith("/"):
        raise ValueError(f"{text!r}: the target {target!r} is not absolute; write the full path inside the container")


def parse_flags(flags: str, text: str) -> tuple[str, ...]:
    """Split the flags; the ones that pyxis would ignore are refused, since `:RO` mounts read-write."""
    words = tuple(flags.split("+"))
    for word in words:
        if word in FLAGS or VALUED_FLAG.fullmatch(word):
            continue
        meant = MEANT.get(word.lower(), word.lower())
        if meant in FLAGS:
            raise ValueError(f"{text!r}: pyxis ignores the flag {word!r}; write {meant}")
        raise ValueError(f"{text!r}: {word!r} is no flag of pyxis; give ro or rw, several joined by '+' (ro+nosuid)")
    return words
