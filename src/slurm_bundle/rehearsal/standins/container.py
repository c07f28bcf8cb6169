"""The --container-* options of pyxis: their grammar, and what becomes of a task that is to run in a container.

A rehearsal has no root and no images, so a container is the machine itself: names of images are made up, sources of
mounts have to be there, and the working folder is looked up through the mounts, as the folder on this side. A path
that exists only inside (the target of a mount that is not its source, what the image holds) is not there.
Messages are those of pyxis 0.24, as the plugin of the test cluster gives them.
"""

import os

from slurm_bundle.rehearsal.standins.getopt import Options
from slurm_bundle.rehearsal.standins.place import Place, StopError, complain
from slurm_bundle.rehearsal.standins.site import Site

ONCE = ("image", "workdir", "name", "save")
PAIRS = ("mount-home", "remap-root", "entrypoint")


def check_options(command: str, options: Options) -> None:
    """Refuse what the plugin refuses before anything is submitted."""

    def refuse(option: str, value: str, *lines: str) -> StopError:
        texts = [f"{command}: error: pyxis: {line}" for line in lines]
        return StopError(255, *texts, f"{command}: error: Invalid --{option} argument: {value}")

    for option in ONCE:
        values = [value for name, value in options.given if name == f"container-{option}"]
        if len(set(values)) > 1:
            raise refuse(f"container-{option}", values[-1], f"--container-{option} specified multiple times")
    for switch in PAIRS:
        on, off = f"container-{switch}", f"no-container-{switch}"
        if on in options and off in options:
            raise refuse(off, "(null)", f"both --{on} and --{off} were specified")
    for name, value in options.given:
        if name == "container-mounts":
            for item in value.split(","):
                check_mount(item, value, refuse)


def check_mount(item: str, whole: str, refuse: "object") -> None:
    """SRC:DST[:FLAGS], or SRC alone."""
    assert callable(refuse)
    source, _, rest = item.partition(":")
    target = rest.partition(":")[0] or source
    if not source or item.count(":") > 2 or item.endswith(":"):
        raise refuse("container-mounts", whole, f"--container-mounts: invalid format: {item}")
    added = f"could not add mount entry: {source}:{target}"
    if source[0] not in "./" and source not in ("tmpfs", "umount"):
        reason = 'mount source must be a relative path, an absolute path, "tmpfs" or "umount"'
        raise refuse("container-mounts", whole, reason, added)
    if target[0] not in "./":
        raise refuse("container-mounts", whole, "mount target must be a relative path or an absolute path", added)


def mounts_of(options: Options) -> list[tuple[str, str]]:
    """Source and target of each mount."""
    items = [item for name, value in options.given if name == "container-mounts" for item in value.split(",")]
    pairs = [item.split(":") for item in items]
    return [(pair[0], pair[1] if len(pair) > 1 else pair[0]) for pair in pairs if pair[0] not in ("tmpfs", "umount")]


class Container:
    """What a step's options ask for."""

    def __init__(self, place: Place, site: Site, options: Options, job: str, step: str) -> None:
        self.place, self.site, self.options = place, site, options
        self.image = options.get("container-image") or ""
        name = options.get("container-name") or ""
        self.name, _, self.flag = name.partition(":")
        self.wanted = bool(self.image or self.name)
        self.label = f"pyxis_{self.name or f'{job}.{step}'}"

    def warn(self) -> None:
        """Say which options go unheeded, as there is no container."""
        for name in ("mounts", "workdir", "writable", "readonly", "save"):
            if not self.wanted and f"container-{name}" in self.options:
                why = "because neither --container-image nor --container-name is set"
                complain(f"srun: error: pyxis: ignoring --container-{name} {why}")

    def path(self, node: str) -> str:
        return f"{self.place.slurm}/containers/{node}+{self.label}"

    def start(self, node: str) -> list[str]:
        """Begin it on a node; what the plugin says where that fails, and nothing where it works."""
        known = os.path.exists(self.path(node))
        if not self.image and not known:
            return [f'error: a container with name "{self.label}" does not exist, and --container-image is not set']
        if not known or not self.name:
            trouble = self.import_image()
            if trouble:
                return trouble
        for source, _ in mounts_of(self.options):
            if not os.path.exists(source):
                return [
                    f"--container-mounts: source path does not exist: {source}",
                    "couldn't create enroot start configuration script",
                    "container was not started successfully by another task",
                ]
        workdir = self.options.get("container-workdir")
        if workdir and not os.path.isdir(self.workdir_here()):
            return [f"couldn't chdir to {workdir}: No such file or directory"]
        if self.name:
            with open(self.path(node), "w") as file:
                file.write(self.image)
        return []

    def import_image(self) -> list[str]:
        image, known = self.image, self.site.words("images")
        if image.startswith(("/", "./")):
            if os.path.isfile(image):
                return []
            reason, doing = (
                f"No such file or directory: {image}",
                f"failed to create container filesystem for image: {image}",
            )
        else:
            complain(f"pyxis: importing docker image: {image}")
            if not known or image in known:
                return []
            host, _, rest = image.removeprefix("docker://").partition("#")
            name, _, tag = rest.partition(":")
            reason = f"URL https://{host}/v2/{name}/manifests/{tag or 'latest'} returned error code: 404 Not Found"
            doing = f"failed to import docker image: {image}"
        return ["child 1 failed with error code: 1", doing, "printing enroot log file:", f"    [ERROR] {reason}"]

    def workdir_here(self) -> str:
        """The working folder, through the mount that holds it; / where none is asked for."""
        workdir = self.options.get("container-workdir") or "/"
        holding = [(s, t) for s, t in mounts_of(self.options) if f"{workdir}/".startswith(t.rstrip("/") + "/")]
        if not holding:
            return workdir
        source, target = max(holding, key=lambda pair: len(pair[1]))
        return source.rstrip("/") + workdir[len(target.rstrip("/")) :]

    def save(self, code: int) -> None:
        """--container-save: an image file, or a complaint that changes no exit code."""
        path = self.options.get("container-save")
        if not path or not self.wanted:
            return
        if not os.path.isdir(os.path.dirname(path) or "."):
            for line in (
                "printing enroot log file:",
                f"    [ERROR] No such file or directory: {path}",
                f"failed to export container {self.label} to {path}",
            ):
                complain(f"slurmstepd: error: pyxis: {line}")
            return
        with open(path, "w") as file:
            file.write(f"hsqs {self.image}\n")
        complain(f"pyxis: exported container {self.label} to {path}")
