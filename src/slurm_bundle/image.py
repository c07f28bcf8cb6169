"""Turns a container image as people write it into the form that every version of enroot reads.

Facts are those measured with pyxis 0.24 and enroot 4.1: before enroot 4.0 only `#` names a registry
(`nvcr.io#nvidia/pytorch:26.05-py3`), and digests are not understood. A user may stand in front of the registry
(`$oauthtoken@nvcr.io#...`, literally); enroot finds the password in a file of the user's.
"""

import re

PATH_STARTS = ("/", "./", "~")
SQUASHFS_ENDINGS = (".sqsh", ".squashfs")
DOCKER = "docker://"
# What docker calls docker.io has its images at another address, which is enroot's default, too.
DOCKER_HUB, DOCKER_HUB_NAMES = "registry-1.docker.io", ("docker.io", "index.docker.io")

REPOSITORY_PART = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*")
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?")
SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://")
LOGIN = re.compile(r"\s*(?:docker://)?[^@/#]*:[^@/#]*@[^@]*[/#]", re.IGNORECASE)
USER = re.compile(r"\$oauthtoken|[A-Za-z0-9._~+-]+")
UNSAFE = re.compile(r"[\s\"'`$\\;&|<>(){}*?!,]")


def is_path(image: str) -> bool:
    """Say whether this is a file on the cluster (it begins with `/`, `./` or `~`) and not a name in a registry."""
    return image.startswith(PATH_STARTS)


def rewrite_for_enroot(image: str) -> str:
    """Give the form for `--container-image`: `registry/name:tag` becomes `registry#name:tag`.

    The first part is a registry when it has a dot or a colon or is `localhost`, which is docker's own rule. Paths and
    what already has a `#` stay; `docker://` goes; a bare name without a tag gets `:latest`, so that it is seen.
    """
    if is_path(image):
        return image
    image = image.removeprefix(DOCKER)
    if "#" in image or SCHEME.match(image):
        return image
    first, slash, rest = image.partition("/")
    if not slash:
        return image if ":" in image or "@" in image else f"{image}:latest"
    if first in DOCKER_HUB_NAMES:
        first = DOCKER_HUB
    return f"{first}#{rest}" if is_registry(first) else image


def check_image(image: str) -> str | None:
    """Say what is wrong with an image and how to mend it, None for nothing."""
    if not image:
        return "'' is empty; give an image such as ubuntu:24.04, or leave the field out"
    if LOGIN.match(image):
        return "a login stands in the image (not shown); take it out, enroot finds it in its .credentials file"
    if image != image.strip():
        return f"{image!r} has a blank at an edge; write {image.strip()!r}"
    unsafe = next((char for char in image if not char.isprintable()), None) or find_unsafe(image)
    if unsafe:
        return f"{image!r} has the character {unsafe!r}, which no image may have here; take it out"
    if image.startswith("-"):
        return f"{image!r} begins with '-', which reads as an option; give an image such as ubuntu:24.04"
    if is_path(image):
        if image.startswith("~") and not image.startswith("~/"):
            return f"{image!r} names another user's home; give an absolute path or ~/..."
        return f"{image!r} is a folder; give the .sqsh file" if image.endswith("/") else None
    scheme = SCHEME.match(image)
    if scheme and scheme[1] != "docker":
        return f"{image!r}: pyxis takes no {scheme[1]}://; give registry/name:tag or the path of a .sqsh file"
    if image.lower().endswith(SQUASHFS_ENDINGS) and ":" not in image:
        return f"{image!r} would be looked up in a registry; for a file write ./{image} or an absolute path"
    return check_reference(image)


def image_remarks(image: str) -> tuple[str, ...]:
    """Give what a valid image's user should know: a missing tag, a digest that needs a newer enroot."""
    if is_path(image):
        return ()
    _, tag, digest = split_reference(image)
    if digest is not None:
        return (f"{image!r} has a digest, which needs enroot 4.0 or newer on the nodes",)
    if tag is None:
        return (
            f"{image!r} has no tag, which means :latest, another image from day to day; give the tag that you mean",
        )
    return ()


def check_reference(image: str) -> str | None:
    """Check `[docker://][user@][registry#or/]repository[:tag][@digest]` part by part."""
    repository, tag, digest = split_reference(image)
    if digest is not None and not DIGEST.fullmatch(digest):
        return f"{image!r}: {digest!r} is no digest; give sha256: and 64 hexadecimal digits"
    if tag is not None and not TAG.fullmatch(tag):
        return f"{image!r}: {tag!r} is no tag; give letters, digits, '.', '_' and '-'"
    registry, separator, rest = repository.partition("#")
    if not separator:
        registry, separator, rest = repository.partition("/")
        if not (separator and is_registry(registry)):
            registry, separator, rest = "", "", repository
    user, at, host = registry.rpartition("@")
    if at and not USER.fullmatch(user):
        return f"{image!r}: {user!r} is no user of a registry; give one word, such as $oauthtoken"
    if separator and not (HOST.fullmatch(host) and int(host.partition(":")[2] or 0) <= 65535):
        return f"{image!r}: {host!r} is no registry; give host or host:port"
    if rest != rest.lower():
        return f"{image!r}: upper case in {rest!r} is refused by registries; write {rest.lower()!r}"
    if not all(REPOSITORY_PART.fullmatch(part) for part in rest.split("/")):
        return f"{image!r}: {rest!r} is no repository; give lower-case parts with '/' between, such as org/name"
    return None


def split_reference(image: str) -> tuple[str, str | None, str | None]:
    """Split into the repository (with its registry), the tag and the digest; None where there is none."""
    image = image.removeprefix(DOCKER)
    user, at, rest = image.partition("@")
    # `user@registry#name` has its `@` before the registry, a digest has it at the end.
    if at and ("#" in rest or ("/" in rest and "/" not in user)):
        image, prefix = rest, user + at
    else:
        prefix = ""
    name, at, digest = image.partition("@")
    head, slash, last = name.rpartition("/")
    base, hash_mark, last = last.rpartition("#")
    last, colon, tag = last.partition(":")
    return prefix + head + slash + base + hash_mark + last, tag if colon else None, digest if at else None


def is_registry(first: str) -> bool:
    host = first.rpartition("@")[2]
    return "." in host or ":" in host or host == "localhost"


def find_unsafe(image: str) -> str | None:
    found = UNSAFE.search(image.removeprefix(DOCKER).removeprefix("$oauthtoken@"))
    return found[0] if found else None
