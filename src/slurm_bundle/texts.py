"""Turns one text of a spec into itself, checked for the place where it will land, or says what is wrong with it.

Every function takes the text and gives it back, or raises ValueError with the value and the way out.
"""

import re
import unicodedata
from pathlib import PurePosixPath

from slurm_bundle.image import check_image
from slurm_bundle.mounts import parse_mount
from slurm_bundle.walltime import parse_duration, parse_walltime

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# What can stand in an `#SBATCH` line: quoting.py writes no other characters.
HEADER_CHARACTERS = r"A-Za-z0-9_.,:+@%/=*&|()\[\] -"
SHELL_UNSAFE = re.compile(r"[\s\"'\\`$;#&|<>(){}*?!~^]")
PIP_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9._,-]+\])?"
PIP_VERSION = r"(?:===|==|>=|<=|~=|!=|<|>)[A-Za-z0-9.*+!_-]+"
PIP_REQUIREMENT = re.compile(rf"{PIP_NAME}(?:{PIP_VERSION}(?:,{PIP_VERSION})*)?")
# Accounting cuts at 255 bytes, and so do file names; a log name needs some for the job id and its ending.
JOB_NAME_LENGTH = 200
# Emoji and some scripts join their letters by these, which cannot be seen themselves.
JOINERS = "\u200c\u200d"
# What file systems and the kernel take (NAME_MAX, PATH_MAX), with room for the names that gen adds to a path.
NAME_BYTES, PATH_BYTES = 255, 3800
# Slurm takes 1024 (tried with 22.05); gen adds to an account and to a log name.
HEADER_LENGTH = 1000
# Variables whose value bash makes itself or refuses (tried with 3.2 and 5.2), and those that job.slurm and task.sh use.
BASH_NAMES = frozenset({
    "BASH", "BASHOPTS", "BASHPID", "BASH_ALIASES", "BASH_ARGC", "BASH_ARGV", "BASH_ARGV0", "BASH_CMDS",
    "BASH_COMMAND", "BASH_COMPAT", "BASH_EXECUTION_STRING", "BASH_LINENO", "BASH_SOURCE", "BASH_SUBSHELL",
    "BASH_VERSINFO", "BASH_VERSION", "BASH_XTRACEFD", "COMP_WORDBREAKS", "DIRSTACK", "EPOCHREALTIME",
    "EPOCHSECONDS", "EUID", "FUNCNAME", "GROUPS", "HISTCMD", "IFS", "LINENO", "OLDPWD", "OPTERR", "OPTIND",
    "PIPESTATUS", "PPID", "PS1", "PS4", "PWD", "RANDOM", "SECONDS", "SHELLOPTS", "SHLVL", "SRANDOM", "UID", "_",
})  # fmt: skip
JOB_NAMES = frozenset({
    "SCRIPTS_DIR", "REPO_DIR", "WORK_DIR", "TASKS", "TASKS_PER_NODE", "GPUS_PER_NODE", "CPUS_PER_TASK",
    "PROCESSES_PER_NODE", "MPI", "NETWORK", "GPU_CLOCKS", "CONTAINER_IMAGE", "CONTAINER_MOUNTS", "CONTAINER_ENV",
    "MARKS", "EXIT_FILE", "proof", "rank", "code", "failed", "absent", "stopped", "trouble", "pause", "options", "mark",
})  # fmt: skip
SLURM_PREFIXES = ("SLURM_", "SBATCH_", "PYXIS_")
VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|[{(].*)")
LOG_FORMS = "%j %x %A %a %N %n %t %u %%"


def check_line(text: str) -> str:
    """Refuse control characters, newlines among them, and what nobody who reviews the text could see."""
    for char in text:
        kind = unicodedata.category(char)
        if kind in ("Cc", "Zl", "Zp"):
            raise ValueError(f"{text!r} has the control character {char!r}; write it on one line, without it")
        if kind == "Cf" and char not in JOINERS:
            raise ValueError(f"{text!r} has the character {char!r}, which cannot be seen; take it out")
    return text


def check_header(text: str) -> str:
    """Refuse what Slurm or a shell could read as more than text in an `#SBATCH` line."""
    check_line(text)
    unsafe = re.search(rf"[^{HEADER_CHARACTERS}]", text)
    if unsafe:
        raise ValueError(
            f"{text!r} has the character {unsafe[0]!r}, which must not stand in an #SBATCH line; take it out"
        )
    if text.startswith("-"):
        raise ValueError(f"{text!r} begins with '-', which reads as an option; begin with a letter or digit")
    if text != text.strip():
        raise ValueError(f"{text!r} has a space at an edge; write {text.strip()!r}")
    if len(text) > HEADER_LENGTH:
        raise ValueError(f"{text!r} has {len(text)} characters, and Slurm takes {HEADER_LENGTH}; write a shorter one")
    return text


def check_job_name(text: str) -> str:
    """Take what Slurm carries as it is: through the directive, accounting, and a log name with %x."""
    if len(text) > JOB_NAME_LENGTH:
        raise ValueError(f"{text[:40]!r}... has {len(text)} characters; give {JOB_NAME_LENGTH} at most")
    check_header(text)
    if "/" in text:
        safe = text.replace("/", "_")
        raise ValueError(f"{text!r} has a '/': it would become a folder in log names with %x; write {safe!r}")
    if text in (".", ".."):
        raise ValueError(f"{text!r} is no name of a folder, which is made of it; give a name with letters or digits")
    return text


def make_job_name(text: str) -> str:
    """Make a job name of a text that was not written as one: what a name cannot hold becomes `_`, the rest is cut."""
    return re.sub(rf"[^{HEADER_CHARACTERS}]|/", "_", text)[:JOB_NAME_LENGTH].strip()


def check_log_pattern(text: str) -> str:
    check_header(text)
    if "/" in text:
        raise ValueError(f"{text!r} has a '/'; give a file name alone, gen chooses the folder")
    forms = re.findall(r"%.?", text)
    unknown = next((form for form in forms if form not in LOG_FORMS.split()), None)
    if unknown:
        raise ValueError(f"{text!r}: Slurm does not know {unknown!r}; give one of {LOG_FORMS}")
    if "%j" not in forms:
        raise ValueError(f"{text!r} has no %j, so a second job would overwrite the log; write for example job_%j.out")
    return text


def check_memory(text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,12}[KMGT]?", text, re.IGNORECASE):
        raise ValueError(f"{text!r} is no size of memory to Slurm; give a number with K, M, G or T, such as 64G")
    return text


def check_clocks(text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,5},[0-9]{1,5}", text):
        raise ValueError(f"{text!r} is no pair of clocks; give '<mem>,<graphics>' in MHz, such as 2619,1980")
    return text


def check_word(text: str, *, allowed: str = "") -> str:
    """Refuse what is no single plain word: a host or user name that ssh or a shell could take for more."""
    check_line(text)
    if text.startswith("-"):
        raise ValueError(f"{text!r} begins with '-', which ssh reads as an option; give the name alone")
    unsafe = next((char for char in SHELL_UNSAFE.findall(text) if char not in allowed), None)
    if unsafe:
        raise ValueError(f"{text!r} has the character {unsafe!r}; give one word without it")
    return text


def check_ssh_host(text: str) -> str:
    if not text:
        raise ValueError("'' is empty; give an ssh destination such as user@login.example.org, or leave the field out")
    check_word(text)
    user, at, host = text.rpartition("@")
    if "/" in text:
        raise ValueError(f'{text!r} is no ssh destination; give user@host, and a port as ssh_options ["-p", "2222"]')
    port = re.fullmatch(r"([^:]+):([0-9]+)", host)
    if port:
        raise ValueError(f'{text!r} has a port; write {user + at + port[1]!r} and ssh_options ["-p", "{port[2]}"]')
    if not host or (at and not user) or host.startswith("-") or ":@" in text or (":" in user):
        raise ValueError(f"{text!r} is no ssh destination; give user@host")
    return text


def check_path(text: str) -> str:
    """Refuse what no file system has: names and paths that are too long for it."""
    check_line(text)
    longest = max(len(name.encode()) for name in text.split("/"))
    if longest > NAME_BYTES:
        raise ValueError(f"{text!r} has a name of {longest} bytes, and file systems take {NAME_BYTES}; shorten it")
    if len(text.encode()) > PATH_BYTES:
        raise ValueError(f"{text!r} has {len(text.encode())} bytes, too many for a path; keep to {PATH_BYTES}")
    return text


def check_cluster_path(text: str) -> str:
    """Take an absolute path, `~` or `~/...`, as the cluster is to see it."""
    check_path(text)
    if "$" in text:
        raise ValueError(f"{text!r} has a '$', and nothing expands variables in it; give the full path or ~/...")
    if not (text.startswith(("/", "~/")) or text == "~"):
        said = "names another user's home" if text.startswith("~") else "is relative"
        raise ValueError(f"{text!r} {said}; give an absolute path or ~/... as the cluster sees it")
    if ".." in text.split("/"):
        raise ValueError(f"{text!r} has a '..'; write the path that it leads to")
    return text


def check_local_path(text: str) -> str:
    """Take a path on this machine, relative to the spec's folder, absolute, or `~/...`."""
    check_path(text)
    if text.startswith("-"):
        raise ValueError(f"{text!r} begins with '-', which reads as an option; write {'./' + text!r}")
    if text.startswith("~") and not (text == "~" or text.startswith("~/")):
        raise ValueError(f"{text!r} names another user's home; give the full path, or {'./' + text!r} for that name")
    variable = VARIABLE.search(text)
    if variable:
        raise ValueError(f"{text!r} has {variable[0]!r}, and nothing expands variables in it; give the path itself")
    return text


def check_named_path(text: str) -> str:
    """Take a local path whose last part is a name, after which gen names something on the cluster."""
    check_local_path(text)
    if PurePosixPath(text).name in ("", "..", "~"):
        raise ValueError(f"{text!r} ends in no name of its own; give the path with the name at its end")
    return text


def check_file_name(text: str) -> str:
    check_path(text)
    if text.startswith("-"):
        raise ValueError(f"{text!r} begins with '-', which reads as an option; begin with another character")
    if "/" in text or text in (".", ".."):
        raise ValueError(f"{text!r} is no file name; give the name alone, the path goes into script_path")
    return text


def check_refresh_path(text: str) -> str:
    """Take a path below the repository: what is named here is deleted on the cluster and restored from HEAD."""
    check_local_path(text)
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if text.startswith(("/", "~")) or not parts or ".." in parts or ".git" in parts:
        raise ValueError(f"{text!r} is no path below the repository; give one such as cpp/")
    if re.search(r"[*?\[\]\\]", text) or text.startswith(":"):
        raise ValueError(f"{text!r} is a pattern to git; name the folder itself, such as cpp/")
    return text


def check_container_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}", text):
        raise ValueError(f"{text!r} is no safe container name; give letters, digits, '.', '_', '-', 200 at most")
    return text


def check_repo_url(text: str) -> str:
    """Take an address for git that holds no password and starts no program."""
    scheme, separator, rest = text.partition("://")
    login, at, _ = rest.partition("/")[0].rpartition("@")
    # A long user name in an https address is a token in practice.
    if separator and at and (":" in login or (scheme != "ssh" and len(login) > 20)):
        raise ValueError("a login stands in the address (not shown); take it out, git's credential helper gives it")
    if "::" in text:
        raise ValueError(f"{text!r} starts a program of git's (ext:: and the like); give an https or ssh address")
    if text.startswith("~"):
        raise ValueError(f"{text!r} begins with '~', which nothing expands in an address; give the full path")
    return check_word(text, allowed="~")


def check_package(text: str) -> str:
    if not PIP_REQUIREMENT.fullmatch(text):
        raise ValueError(
            f"{text!r} is no pip requirement; give name or name==1.2.3, without spaces, options or addresses"
        )
    return text


def check_plugin(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_]+", text):
        raise ValueError(f"{text!r} is no MPI plugin; give a name that `srun --mpi=list` shows, such as pmix")
    return text


def check_environment_name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no name of a variable; give letters, digits and '_', not beginning with a digit")
    if text.startswith(SLURM_PREFIXES):
        raise ValueError(f"{text!r} is Slurm's own; leave it out, Slurm sets it in the job")
    if text in BASH_NAMES:
        raise ValueError(f"{text!r} is bash's own, which sets it itself; choose another name")
    if text in JOB_NAMES:
        raise ValueError(f"{text!r} is a variable of the job script; choose another name")
    if text == "PATH":
        raise ValueError("'PATH' set here would hide the cluster's programs; extend it inside the command")
    return text


def check_pattern(text: str) -> str:
    check_line(text)
    if not text:
        raise ValueError("'' matches every line; take it out")
    return text


def check_walltime(text: str) -> str:
    parse_walltime(text)
    return text


def check_duration(text: str) -> str:
    parse_duration(text)
    return text


def check_container_image(text: str) -> str:
    wrong = check_image(text)
    if wrong:
        raise ValueError(wrong)
    return text


def check_mount(text: str) -> str:
    parse_mount(check_line(text))
    return text
