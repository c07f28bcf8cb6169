"""What sbatch, srun and salloc may be told: on the command line, in #SBATCH lines, in their environment."""

import os

from slurm_bundle.rehearsal.standins.getopt import Options, Parser
from slurm_bundle.rehearsal.standins.place import StopError

COMMON = """
account=A bb= bbf= begin=b cluster-constraint= clusters=M comment= constraint=C container= contiguous. core-spec=S
cores-per-socket= cpu-freq= cpus-per-gpu= cpus-per-task=c deadline= delay-boot= dependency=d chdir=D distribution=m
exclude=x exclusive? extra-node-info=B gpu-bind= gpu-freq= gpus=G gpus-per-node= gpus-per-socket= gpus-per-task= gres=
gres-flags= help.h hint= hold.H job-name=J licenses=L mail-type= mail-user= mcs-label= mem= mem-bind= mem-per-cpu=
mem-per-gpu= mincpus= network= nice? no-kill?k nodefile=F nodelist=w nodes=N ntasks=n ntasks-per-core=
ntasks-per-gpu= ntasks-per-node= ntasks-per-socket= overcommit.O oversubscribe.s partition=p power= priority= profile=
qos=q quiet.Q reboot. reservation= signal= sockets-per-node= spread-job. switches= thread-spec= threads-per-core=
time=t time-min= tmp= usage. use-min-nodes. verbose.v version.V wait-all-nodes= wckey=
"""
PYXIS = """
container-image= container-mounts= container-workdir= container-name= container-save= container-env= container-unshare=
container-mount-home. no-container-mount-home. container-remap-root. no-container-remap-root. container-entrypoint.
no-container-entrypoint. container-entrypoint-log. container-writable. container-readonly.
"""
OWN = {
    "sbatch": """array=a error=e export= export-file= get-user-env? gid= ignore-pbs. input=i no-requeue. open-mode=
        output=o parsable. propagate? requeue. test-only. uid= wait.W wrap=""",
    "srun": """accel-bind= acctg-freq= bcast? bcast-exclude= compress? cpu-bind= debugger-test. disable-status.X
        epilog= error=e exact. export= het-group= immediate?I input=i jobid= kill-on-bad-exit?K label.l
        max-threads=T mpi= msg-timeout= multi-prog. no-allocate.Z open-mode= output=o overlap. preserve-env.E prolog=
        propagate? pty. quit-on-interrupt. relative=r resv-ports? send-libs? slurmd-debug= task-epilog= task-prolog=
        test-only. unbuffered.u wait=W""",
    "salloc": "bell. get-user-env? gid= immediate?I kill-command?K no-bell. no-shell. uid= wait=W",
}
FIRST = {ord(mark): " " for mark in "=?."}  # so that time stands before time-min

# The beginnings of names of variables that speak for an option, and what follows it.
PREFIXES = {"sbatch": "SBATCH_", "srun": "SLURM_", "salloc": "SALLOC_"}
VARIABLES = {
    "ACCOUNT": "account", "ARRAY_INX": "array", "CONSTRAINT": "constraint", "CPUS_PER_TASK": "cpus-per-task",
    "EXCLUSIVE": "exclusive", "EXPORT": "export", "GPUS": "gpus", "GPUS_PER_NODE": "gpus-per-node", "GRES": "gres",
    "JOB_NAME": "job-name", "MEM_PER_CPU": "mem-per-cpu", "MEM_PER_NODE": "mem", "NETWORK": "network",
    "NO_REQUEUE": "no-requeue", "OPEN_MODE": "open-mode", "OUTPUT": "output", "ERROR": "error", "INPUT": "input",
    "PARTITION": "partition", "QOS": "qos", "REQUEUE": "requeue", "RESERVATION": "reservation", "SIGNAL": "signal",
    "TIMELIMIT": "time", "WCKEY": "wckey",
}  # fmt: skip
SRUN_VARIABLES = {
    "NTASKS": "ntasks", "NNODES": "nodes", "NTASKS_PER_NODE": "ntasks-per-node", "EXPORT_ENV": "export",
    "KILL_BAD_EXIT": "kill-on-bad-exit", "LABELIO": "label", "MPI_TYPE": "mpi", "JOB_ID": "jobid",
    "STDOUTMODE": "output", "STDERRMODE": "error", "OVERLAP": "overlap", "EXACT": "exact",
}  # fmt: skip


def parser_of(command: str) -> Parser:
    plain = " ".join(sorted(f"{COMMON} {OWN[command]}".split(), key=lambda word: word.translate(FIRST)))
    return Parser(command, f"{plain} {PYXIS}", code=255)


def read_environment(command: str) -> list[tuple[str, str]]:
    """The options that the environment of the command names; those of the command line count more."""
    known = {**VARIABLES, **(SRUN_VARIABLES if command == "srun" else {})}
    if command == "srun":
        known.pop("EXPORT")
    own = parser_of(command).kinds
    found = [(known[name], os.environ.get(PREFIXES[command] + name)) for name in known if known[name] in own]
    pyxis = [(word[:-1], os.environ.get("PYXIS_" + word[:-1].replace("-", "_").upper())) for word in PYXIS.split()]
    return [(name, value) for name, value in [*found, *pyxis] if value is not None]


def read_directives(script: str) -> list[str]:
    """The words of the #SBATCH lines of a batch script; its first line that is neither blank nor comment ends them."""
    words = []
    for line in script.split("\n"):
        if line.startswith("#SBATCH"):
            words += split_directive(line[7:])
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return words


def split_directive(text: str) -> list[str]:
    """The words of a directive: blanks divide them, quotes and backslashes keep them together, # begins a comment."""
    words: list[str] = []
    word, quote, escaped, begun = "", "", False, False
    for character in text:
        if escaped:
            word, escaped = word + character, False
        elif character == "\\":
            escaped = begun = True
        elif quote:
            quote, word = ("", word) if character == quote else (quote, word + character)
        elif character in "\"'":
            quote, begun = character, True
        elif character == "#":
            break
        elif character.isspace():
            if begun:
                words.append(word)
            word, begun = "", False
        else:
            word, begun = word + character, True
    if quote:
        raise StopError(1, f"sbatch: error: Unmatched `{quote}` in [{text.strip()}]")
    return [*words, word] if begun else words


def read_options(command: str, words: list[str], directives: list[str] | None = None) -> Options:
    """All options of a call; later ones count more: directives, then environment, then command line."""
    parser = parser_of(command)
    options = parser.parse(words)
    given = parser.parse(directives or []).given
    options.given = [*given, *read_environment(command), *options.given]
    return options
