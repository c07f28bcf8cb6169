"""Sources scripts in one long-lived bash, each in a process of its own, and says what every variable holds then."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Reads requests of FOLDER, FILE, NAME..., an empty word; answers with words that NUL ends, and an empty one at the end.
SERVER = r"""
give() {
    local given
    eval "given=(\${$1+\"\${$1[@]}\"})"
    printf '%s\0' "$1" "${#given[@]}" ${given[@]+"${given[@]}"}
}
serve() (
    cd "$1" || exit
    asked=("${@:3}")
    . "./$2" image /root /scripts /repo >said 2>&1 </dev/null
    printf 'exit\0001\000%s\0' "$?"
    set +eu
    for one in ${asked[@]+"${asked[@]}"}; do
        give "$one"
    done
    new=''
    for one in $(compgen -v); do
        case $known in *" $one "*) ;; *) new="$new $one" ;; esac
    done
    printf 'new\0001\000%s\0' "$new"
)
HOME='/home/it'\''s me' SLURM_JOB_ID=7
word='' one='' new='' known='' asked=() words=()
known=" $(compgen -v | tr '\n' ' ') FUNCNAME OLDPWD "
while IFS= read -r -d '' word; do
    if [ -n "$word" ]; then
        words+=("$word")
    else
        serve "${words[@]}"
        "$BASH" -n "${words[0]}/${words[1]}" >>"${words[0]}/said" 2>&1
        printf '\0'
        words=()
    fi
done
"""
HOME = "/home/it's me"


@dataclass(frozen=True)
class Sourced:
    """What a script made: the variables asked for, the names of all new ones; what it, or `bash -n` of it, printed."""

    values: dict[str, list[str]]
    new: frozenset[str]
    said: str
    ended: str


class Shell:
    """A bash that is asked again and again."""

    def __init__(self, program: str = "bash") -> None:
        self.process = subprocess.Popen(
            [program, "--noprofile", "--norc", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests, self.answers = self.process.stdin, self.process.stdout
        self.rest = b""

    def close(self) -> None:
        self.requests.close()
        self.process.wait()
        self.answers.close()

    def source(self, folder: Path, name: str, variables: list[str]) -> Sourced:
        """Source the file `name` of `folder`, standing in that folder, and read the variables."""
        self.requests.write(b"".join(word.encode() + b"\0" for word in (str(folder), name, *variables, "")))
        self.requests.flush()
        values: dict[str, list[str]] = {}
        while variable := self.read_word():
            values[variable] = [self.read_word() for _ in range(int(self.read_word()))]
        return Sourced(
            {name: value for name, value in values.items() if name in variables},
            frozenset(" ".join(values.get("new", [])).split()),
            (folder / "said").read_text(errors="replace"),
            "".join(values.get("exit", ["it ended the shell"])),
        )

    def read_word(self) -> str:
        while b"\0" not in self.rest:
            more = os.read(self.answers.fileno(), 65536)
            assert more, "bash has gone"
            self.rest += more
        word, _, self.rest = self.rest.partition(b"\0")
        return word.decode()
