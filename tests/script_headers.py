"""Turns the scripts of a bundle into the lies in their headers, by what the text below each header does.

What counts in a header; two lines of a kind both count, and remarks stand beside it as a reader likes them:

Calls:    programs. Of a script that runs: all that it can come to, in what it sources or is sent with, too. Of one that
          is there for others: those in its own text. `, and what X calls` stands for those of another script.
Expects:  programs that have to be there, and are not called.
Reads:    of a step: what it sources, and the login scripts that it sends; Sends: what it sends for the nodes.
Writes:   places, as PLACE has them, with semicolons between them. Of a step: those of its login scripts, too.
Exit:     codes, each before its meaning.
"""

import re
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tests.shell import EMPTY, SOMETHING, Call, Script, parse

Bundle = Mapping[str, str]
"""The text of each script of a bundle, by its path."""

# These hold values, or text of the spec below a few lines of ours.
NOT_OURS = ("config.sh", "command.sh", "build_command.sh", "login/init.sh")

PLACE = re.compile(
    r"(\.run/[\w.]*|a scratch folder|a branch on origin|the folder (~/\.ssh|[A-Z_]+)|REMOTE_REPO|REMOTE_WORK|REPO_DIR"
    r"|SCRIPTS_DIR(?:/log|/submitted)?|MARKS|the logs|the queue|what (\S+|each step|your batch script) writes)"
    r"(?=[,:]| on the cluster|$)"
)

# Codes that stand in the text of a step that never comes there: preflight.sh tells a line that broke as 3.
UNREACHED = {("preflight.sh", 13)}

# What Slurm calls the end of a job, and nothing for one that nobody knows.
ENDS = ("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "NODE_FAIL", "DEADLINE", "PREEMPTED", "''")


@dataclass(frozen=True)
class Header:
    """The facts at the top of a script, each as one line."""

    facts: Mapping[str, str]

    def fact(self, label: str) -> str:
        return self.facts.get(label, "")

    @property
    def calls(self) -> list[str]:
        return re.sub(r", and what [^;]*", "", self.fact("Calls")).replace(";", " ").split()

    @property
    def expects(self) -> list[str]:
        return re.sub(r", to be [^;]*", "", self.fact("Expects")).replace(";", " ").split()

    def files(self, label: str) -> set[str]:
        return set(re.findall(r"[\w/]+\.(?:sh|slurm)\b", self.fact(label)))

    @property
    def items(self) -> list[str]:
        """What is written, an item a place."""
        return [item.strip() for item in self.fact("Writes").split(";") if item.strip()]

    @property
    def places(self) -> set[str]:
        return {match[1] for item in self.items if (match := PLACE.match(item))}

    @property
    def codes(self) -> set[int]:
        return {int(code) for code in re.findall(r"(?<![\w.])(\d+)(?= [a-z])", self.fact("Exit"))}


def read_header(text: str) -> Header:
    facts: dict[str, str] = {}
    label = ""
    for line in text.split("\n\n")[0].splitlines():
        if match := re.match(r"# ([A-Z][a-z]+(?: on)?): +(.*)", line):
            label = match[1]
            facts[label] = f"{facts[label]}; {match[2]}" if label in facts else match[2]
        elif label and re.match(r"# {9,}\S", line):
            facts[label] += " " + line.removeprefix("#").strip()
        else:
            label = ""
    return Header(facts)


def list_scripts(bundle: Bundle) -> list[str]:
    """The scripts that have a header of ours; a batch script is the user's own."""
    own = [path for path in bundle if "/" not in path or path.startswith("login/") or "task.sh" in bundle]
    return sorted(path for path in own if path not in NOT_OURS)


def is_step(bundle: Bundle, path: str) -> bool:
    return '\n. "$bundle/config.sh"\n' in bundle[path]


def comes_before(bundle: Bundle, path: str) -> list[str]:
    """What stands before a script in the same shell: what a step sources, what is sent with a login script."""
    if is_step(bundle, path):
        before = [call[1] for call in parse(bundle[path]).top if call[0] == "."]
    elif path.startswith("login/"):
        always = (call for call in parse(bundle["remote.sh"]).functions["on_login"] if call[0] == "cat")
        before = [word for call in always for word in call[1:] if word.startswith(BUNDLE)]
        calls = (call for other in bundle if "on_login " in bundle[other] for call in parse(bundle[other]).all_calls)
        before += [script for call in calls if scripts_sent(call)[-1:] == [path] for script in scripts_sent(call)[:-1]]
    else:
        before = []
    return [path for word in before if (path := in_bundle(word)) in bundle and path not in NOT_OURS]


BUNDLE = f"{SOMETHING}bundle/"


def in_bundle(word: str) -> str:
    """The path that a word of a script names in the bundle."""
    return word.removeprefix(BUNDLE)


def scripts_sent(call: Call) -> list[str]:
    """The login scripts that a call sends, in order; what the last one does is what it is for."""
    names = [word for word in call[1:] if "=" not in word and SOMETHING not in word] if call[0] == "on_login" else []
    return [f"login/{name}" for name in names]


def list_libraries(bundle: Bundle) -> list[str]:
    """The scripts that are there for others, in an order in which they can be read."""
    sending = (path for path in bundle if is_step(bundle, path) or path.startswith("login/"))
    return list(dict.fromkeys(library for path in sending for library in comes_before(bundle, path)))


@dataclass(frozen=True)
class Subject:
    """One script of a bundle, and what can be read of it."""

    bundle: Bundle
    path: str
    libraries: Sequence[str]

    def other(self, path: str) -> "Subject":
        return replace(self, path=path)

    @cached_property
    def header(self) -> Header:
        return read_header(self.bundle[self.path])

    @cached_property
    def own(self) -> Script:
        return parse(self.bundle[self.path])

    @cached_property
    def is_step(self) -> bool:
        return is_step(self.bundle, self.path)

    @cached_property
    def is_library(self) -> bool:
        return self.path in self.libraries

    @property
    def on_login(self) -> bool:
        return self.path.startswith("login/")

    @cached_property
    def whole(self) -> Script:
        """The script with those before it; a library with all the others of its side, whose functions it may call."""
        before = comes_before(self.bundle, self.path)
        if self.is_library:
            others = (path for path in self.libraries if path.startswith("login/") == self.on_login)
            before = [path for path in others if path != self.path]
        return sum((parse(self.bundle[path]) for path in before), EMPTY) + self.own

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        return self.own.all_calls if self.is_library else self.whole.reached_calls()

    @cached_property
    def commands(self) -> set[str]:
        return self.whole.commands(self.calls)

    @cached_property
    def sends(self) -> set[str]:
        """The scripts that it runs on the login node."""
        return {script for call in self.calls for script in scripts_sent(call)}


def lies(bundle: Bundle) -> list[str]:
    """Each wrong line of a header, with what would be right."""
    found = []
    libraries = list_libraries(bundle)
    for path in list_scripts(bundle):
        subject = Subject(bundle, path, libraries)
        checks = [lies_of_calls, lies_of_places]
        checks += [lies_of_writes_here] if subject.is_library else [lies_of_writes]
        checks += [lies_of_reads] if not subject.on_login and (subject.is_step or subject.is_library) else []
        checks += [lies_of_codes] if subject.is_step else []
        found += [f"{path}: {lie}" for check in checks for lie in check(subject)]
    return found


def differ(label: str, told: Collection[str | int], right: Collection[str | int], between: str) -> Iterator[str]:
    """What is lacking and what is wrong, and all that is right, as it could stand in the header."""
    lacking, wrong = sorted(set(right) - set(told)), sorted(set(told) - set(right))
    faults = [f"lacks {', '.join(map(str, lacking))}"] * bool(lacking)
    faults += [f"has {', '.join(map(str, wrong))} for nothing"] * bool(wrong)
    faults += ["has something twice"] * (len(set(told)) != len(told))
    if faults:
        whole = between.join(map(str, sorted(right))) or "nothing of the kind"
        yield f"{label}: {' and '.join(faults)}; right is: {whole}"


def lies_of_calls(subject: Subject) -> Iterator[str]:
    yield from differ("Calls", subject.header.calls, subject.commands, " ")
    sought = {word for call in subject.calls if call[0] in subject.whole.seekers for word in call[1:]}
    sought = {word for word in sought if SOMETHING not in word and not word.isdigit()} | subject.own.looked_for
    yield from differ("Expects", subject.header.expects, sought - subject.commands, " ")


def lies_of_reads(subject: Subject) -> Iterator[str]:
    calls = subject.own.all_calls
    words = {in_bundle(word) for call in calls for word in call[1:] if word.startswith(BUNDLE)}
    read = {word for word in words if SOMETHING not in word} | subject.sends
    told = subject.header.files("Reads")
    if subject.is_library:  # it may say whose answers it reads
        read |= told & set(subject.bundle)
    yield from differ("Reads", told, read, ", ")
    sent = {word for call in calls if call[0] == "submit_once" for word in call[2:] if SOMETHING not in word}
    yield from differ("Sends", subject.header.files("Sends"), sent, ", ")


def lies_of_places(subject: Subject) -> Iterator[str]:
    for item in subject.header.items:
        if not PLACE.match(item):
            yield f"Writes: '{item}' begins with none of the places in tests/script_headers.py"


def lies_of_writes(subject: Subject) -> Iterator[str]:
    """What runs shows more of; here: a step tells what its login scripts tell, and what calls give away is told."""
    told = subject.header.places
    if subject.sends:
        doing = subject.sends - set(subject.libraries)
        there = {place for path in doing for place in subject.other(path).header.places}
        there -= {f"the folder {place}" for place in there} | {"a scratch folder"}
        here = {place for place in told if re.match(r"\.run/|a |the folder ~|what ", place)}
        yield from differ("Writes", told - here, there, "; ")
    given_away = {"a scratch folder"} if "mktemp" in subject.commands else set()
    if subject.on_login:
        given_away |= {"the queue"} if {"sbatch", "scancel"} & subject.commands else set()
        yield from differ("Writes", told & {"the queue", "a scratch folder"}, given_away, "; ")
    else:
        yield from differ("Writes", told & {"a scratch folder"}, given_away, "; ")


def lies_of_writes_here(subject: Subject) -> Iterator[str]:
    """Whether a library that keeps a record says so."""
    text = subject.bundle[subject.path]
    keeps = bool(re.search(r'^ +keep |>"\$state|mv "\$state|rm -f "\$state', text, re.MULTILINE))
    told = any(place.startswith(".run/") for place in subject.header.places)
    if keeps != told and not subject.on_login:
        yield "Writes: lacks .run/" if keeps else "Writes: has .run/ for nothing"


def lies_of_codes(subject: Subject) -> Iterator[str]:
    codes = list_codes(subject) - {code for path, code in UNREACHED if path == subject.path}
    yield from differ("Exit", subject.header.codes, codes, ", ")


def list_codes(subject: Subject) -> set[int]:
    """The codes with which a step can end: of its steps, those in its text, and those that stand for a verdict."""
    if "STEPS" in subject.own.constants:
        steps = (*subject.own.constants["STEPS"].split(), "cleanup")
        return {code for step in steps for code in subject.other(f"{step}.sh").header.codes}
    codes = {0}
    for call in subject.calls:
        if call[0] in ("exit", "die", "need", "expect_end") and call[1:]:
            text = subject.whole.constants.get(call[1].removeprefix(SOMETHING), call[1])
            codes |= {int(text)} if text.isdigit() else set()
    if any(call[0] == "exit_code" for call in subject.calls):
        codes |= verdict_codes(subject)
    return codes


def verdict_codes(subject: Subject) -> set[int]:
    """The exit codes of all verdicts that there are, by having each end of a watch and of a job judged."""
    judge = "judge_build" if any(call[0] == "judge_build" for call in subject.calls) else "judge job"
    text = "".join(subject.bundle[path] for path in comes_before(subject.bundle, subject.path))
    script = f"""
        bundle=/nonexistent state=/nonexistent
        {text}
        kept() {{ echo 1; }}
        keep() {{ :; }}
        answer() {{ :; }}
        trouble_there() {{ :; }}
        settle() {{ :; }}
        for end in hang timeout lost; do {judge}; exit_code "$status"; echo; done
        end=ended
        for state_there in {" ".join(ENDS)}; do {judge}; exit_code "$status"; echo; done
    """
    done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {int(code) for code in done.stdout.split()}
