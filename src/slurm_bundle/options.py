"""Turns extra options for sbatch and ssh into a list that cannot undo what the bundle relies on.

Options that have a field of their own are sent there; options that gen sets itself are refused. getopt takes any
unambiguous beginning of a long option (`--out` for `--output`), so beginnings are refused as well.
"""

import re
import shlex

from slurm_bundle.problems import describe_value
from slurm_bundle.texts import check_header, check_line, check_ssh_host, check_word

# Option of sbatch -> the field that sets it.
FIELDS = {
    "account": "account", "comment": "comment", "constraint": "constraint", "cpus-per-task": "cpus_per_task",
    "gpus-per-node": "gpus_per_node", "job-name": "job_name", "mem": "mem", "network": "network", "nodes": "node_count",
    "partition": "partition", "qos": "qos", "reservation": "reservation", "time": "time_limit",
    "output": "log_file_pattern", "requeue": "requeue", "no-requeue": "requeue",
}  # fmt: skip

# Option of sbatch -> why it cannot be given.
OWN = {
    "array": "one bundle watches one job",
    "chdir": "the work directory is remote_work_dir",
    "clusters": "the job id would name a job of another cluster",
    "dependency": "gen chains its jobs itself",
    "error": "gen reads the log there",
    "export": "variables go into env and pass_env",
    "export-file": "variables go into env and pass_env",
    "help": "it submits nothing",
    "input": "a job of a bundle reads nothing from stdin",
    "ntasks": "the recipe decides it, from node_count and required_devices_per_node",
    "ntasks-per-node": "the recipe decides it, from required_devices_per_node",
    "open-mode": "gen decides it by the field requeue",
    "parsable": "gen sets it",
    "quiet": "gen reads what sbatch says",
    "test-only": "it submits nothing",
    "usage": "it submits nothing",
    "version": "it submits nothing",
    "wait": "monitor.sh waits",
    "wrap": "the job script is the bundle's",
}

# Of those, the ones that a batch script of the user's own cannot have either, with their short forms.
OWN_IN_SCRIPTS = {"array": "a", "chdir": "D", "clusters": "M", "test-only": "", "wait": "W"}

# Real options of sbatch that are beginnings of the names above.
NOT_ABBREVIATIONS = frozenset({"gpus", "mem"})

SSH_VALUES = "piJoFl"
SSH_OWN = frozenset(
    {"batchmode", "controlmaster", "controlpath", "controlpersist", "forkafterauthentication"}
    | {"remotecommand", "requesttty", "sessiontype", "stdinnull"}
)
SSH_PROGRAMS = frozenset(
    {"knownhostscommand", "localcommand", "permitlocalcommand", "proxycommand", "proxyusefdpass", "xauthlocation"}
    | {"pkcs11provider", "securitykeyprovider", "smartcarddevice"}
)


def check_sbatch_option(text: str) -> str:
    """Take `--long` or `--long=value`; raises ValueError for one that gen sets itself or that has a field."""
    found = re.fullmatch(r"--([a-z][a-z-]*)(?:=(.*))?", text, re.DOTALL)
    if not found:
        raise ValueError(f"{text!r} is no long option; write --option or --option=value, in one string")
    name, value = found[1], found[2]
    if value is not None:
        if not value:
            raise ValueError(f"{text!r} has no value; write --{name}=value")
        check_header(value)
    if name in NOT_ABBREVIATIONS - FIELDS.keys():
        return text
    if name.startswith("container-"):
        raise ValueError(f"{text!r} would run the job script itself in the container; use container_image and mounts")
    full = name if name in FIELDS or name in OWN else find_abbreviated(name)
    if full in FIELDS:
        raise ValueError(f"{text!r} sets what the field {FIELDS[full]} sets; give {FIELDS[full]} in the spec")
    if full in OWN:
        raise ValueError(f"{text!r} is not allowed: {OWN[full]}; take it out")
    return text


def find_abbreviated(name: str) -> str:
    """Give the option that this is a beginning of, or the name itself."""
    return next((full for full in sorted(FIELDS.keys() | OWN.keys()) if full.startswith(name)), name)


def read_directives(script: str) -> tuple[str, ...]:
    """Give the words of the #SBATCH lines of a batch script, up to where sbatch stops reading them (man sbatch)."""
    words: list[str] = []
    for line in script.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith("#SBATCH"):
            try:
                words += shlex.split(line.removeprefix("#SBATCH"), comments=True)
            except ValueError:
                words += line.split()[1:]
    return tuple(words)


def refuse_directives(script: str) -> tuple[str, ...]:
    """Say of each directive of a batch script that its bundle could not watch what is wrong with it."""
    short = {f"-{letter}": name for name, letter in OWN_IN_SCRIPTS.items() if letter}
    found = []
    for word in read_directives(script):
        long = word[2:].partition("=")[0] if word.startswith("--") else ""
        name = find_abbreviated(long) if long else short.get(word[:2], "")
        if name in OWN_IN_SCRIPTS:
            found.append(f"#SBATCH {word} is not allowed: {OWN[name]}; take it out")
    return tuple(found)


def read_ssh_options(value: object) -> tuple[str, ...] | None:
    """Take the words of -p, -i, -J, -o KEY=VALUE, -F and -l, each value in a word of its own or joined."""
    if value is None:
        return None
    if not isinstance(value, (list, tuple)):
        raise ValueError(f'expected an array, got {describe_value(value)}; write ["-p", "2222"]')
    words = list(value)
    if not all(isinstance(word, str) for word in words):
        raise ValueError(f'expected an array of strings, got {describe_value(value)}; write ["-p", "2222"]')
    rest = iter(words)
    for word in rest:
        if not re.match(rf"-[{SSH_VALUES}]", word):
            raise ValueError(
                f"{word!r} is not allowed; give -p, -i, -J, -o KEY=VALUE, -F or -l, the rest in ~/.ssh/config"
            )
        content = word[2:] or next(rest, "")
        if not content:
            raise ValueError(f"{word!r} has no value; give it in the next string")
        check_ssh_value(word[:2], content)
    return tuple(words)


def check_ssh_value(option: str, content: str) -> None:
    check_line(content)
    if option == "-p" and not re.fullmatch(r"[0-9]{1,5}", content):
        raise ValueError(f"-p {content!r} is no port; give a number such as 2222")
    if option == "-l":
        check_word(content)
    if option == "-J":
        for hop in content.split(","):
            check_ssh_host(re.sub(r":[0-9]+$", "", hop))
    if option in ("-i", "-F") and content.startswith("-"):
        raise ValueError(f"{option} {content!r} begins with '-'; give the path of a file")
    if option == "-F":
        check_ssh_file(content)
    if option == "-i" and re.search(r"\$[A-Za-z_]", content):
        raise ValueError(f"-i {content!r}: nothing expands $NAME in it; write ~/..., or the full path")
    if option == "-o":
        check_ssh_setting(content)


def check_ssh_file(content: str) -> None:
    """Refuse a name that ssh, which passes it to a shell for a jump host, would run, or a ~ that it does not expand."""
    unsafe = re.search(r"[^\w./@%+=,:-]", content, re.ASCII)
    if unsafe:
        said = "which ssh does not expand" if unsafe[0] == "~" else "which a shell would take for more, for a jump host"
        raise ValueError(f"-F {content!r} has the character {unsafe[0]!r}, {said}; give the full path of a plain name")


def check_ssh_setting(content: str) -> None:
    key, equals, _ = content.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z]+", key):
        raise ValueError(f"-o {content!r} is no setting; give KEY=VALUE such as ServerAliveInterval=30")
    if key.lower() in SSH_OWN:
        raise ValueError(f"-o {content!r} is not allowed: gen sets {key} itself; take it out")
    if key.lower() in SSH_PROGRAMS:
        raise ValueError(f"-o {content!r} starts a program here; put it into ~/.ssh/config, where it is yours alone")
