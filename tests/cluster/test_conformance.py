"""The practice cluster against the real one, call by call: the same words, the same exit code.

Each section below is a script that runs on the login node of both; a line `call COMMAND` is a call that is compared.
What may differ is what `normalise` takes out, rule by rule, and nothing else.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from slurm_bundle.rehearsal.practice import Practice

pytestmark = pytest.mark.cluster

# Runs a call, and marks what it says. `later ID STATE...` waits until the job is that far, `known` and `accounted`
# until accounting has it, and has its end.
PRELUDE = r"""
call() {
    local code=0
    ("$@") >.out 2>.err </dev/null || code=$?
    printf '@@call %s\n@@out\n' "$((calls += 1))"
    cat .out
    printf '@@err\n'
    cat .err
    printf '@@code %s\n' "$code"
}
name() { printf '@@id %s %s\n' "$1" "${!1}"; }
submit() {
    local name=$1
    shift
    printf -v "$name" %s "$(sbatch --parsable "$@")"
    name "$name"
}
later() {
    local job=$1 state
    shift
    for _ in $(seq 300); do
        for state in $(squeue --noheader --states=all --jobs="$job" --format=%T); do
            case " $* " in *" $state "*) return ;; esac
        done
        sleep 0.2
    done
    echo "job $job never was $*" >&2
}
known() {
    for _ in $(seq 300); do
        [ -z "$(sacct -n -X -j "$1" -o JobID)" ] || return 0
        sleep 0.2
    done
}
accounted() {
    for _ in $(seq 300); do
        case $(sacct -X -n -P -j "$1" -o JobName,State,End) in
            allocation* | *RUNNING* | *PENDING* | *Unknown | '') ;;
            *) return ;;
        esac
        sleep 0.2
    done
}
"""

# On a cluster that has just come up, ids are small numbers, as counts are. Held tasks that are changed get ids at once.
USE_UP_IDS = """
next=$(sbatch --test-only --wrap=true 2>&1 | sed 's/.*Job \\([0-9]*\\) to start.*/\\1/')
[ "$next" -lt 1000 ] || exit 0
r=$(sbatch --parsable --hold --array=1-1000 --wrap=true) && scontrol update "JobId=${r}_[1-999]" Nice=1 && scancel $r
"""

SECTIONS = {
    "asking": r"""
call squeue --name=nothing
call squeue --version
call squeue --jobs=99999 --noheader
call squeue --jobs=99999,99998 --noheader
call squeue --jobs=abc
call squeue --nothing
call squeue --noheader --states=nothing
call squeue --noheader --user=nobody-here
call sinfo
call sinfo --summarize
call sh -c 'sinfo --Node | sort'
call sinfo --noheader --format='%P|%a|%l|%D|%t|%T|%N|%G|%c|%m|%f|%C|%F'
call sinfo --noheader --partition=short --format='%P %l'
call sinfo --version
call scontrol show hostnames 'n[1-3,07-09],x2'
call scontrol show hostlist n1,n2,n3,x1
call scontrol show partition
call scontrol --oneliner show partition short
call scontrol show partition nowhere
call scontrol show node nowhere
call scontrol show job 99999
call scontrol --oneliner show job 99999
call scontrol nothing
call scontrol show nothing
call scontrol --version
call scontrol update JobId=99999 TimeLimit=5
call scontrol hold 99999
call scontrol release 99999
call scontrol requeue 99999
call sacct --version
call sacct --jobs=99999
call sacct --jobs=99999 --noheader --parsable2 --format=JobID,State
call sacct --format=nothing
call sacct --helpformat
call scancel 99999
call scancel abc
call scancel
call scancel --nothing
""",
    "refusals": r"""
printf '#!/bin/bash\n#SBATCH --ntasks=2\n#SBATCH --job-name="a name" # a comment\ntrue\n#SBATCH --nodes=2\n' >job.sh
printf 'echo hi\n' >plain.sh
printf '#!/bin/bash\r\necho hi\r\n' >dos.sh
: >empty.sh
call sbatch --nothing job.sh
call sbatch nowhere.sh
call sbatch plain.sh
call sbatch dos.sh
call sbatch empty.sh
call sbatch --partition=nowhere job.sh
call sbatch --account=nobody job.sh
call sbatch --time=bad job.sh
call sbatch --time=1000h job.sh
call sbatch --time=1-2 job.sh
call sbatch --partition=short --time=31 job.sh
call sbatch --gpus-per-node=9 job.sh
call sbatch --gpus-per-node=x job.sh
call sbatch --gres=foo:1 job.sh
call sbatch --constraint=nothing job.sh
call sbatch --mem=999G job.sh
call sbatch --mem=abc job.sh
call sbatch --cpus-per-task=17 job.sh
call sbatch --ntasks=33 --wrap=true
call sbatch --ntasks=0 --wrap=true
call sbatch --nodes=abc --wrap=true
call sbatch --nodelist=n9 --wrap=true
call sbatch --exclude=n1,n2 --wrap=true
call sbatch --reservation=nothing --wrap=true
call sbatch --licenses=nothing --wrap=true
call sbatch --begin=tomorrowish --wrap=true
call sbatch --dependency=nothing --wrap=true
call sbatch --array=a --wrap=true
call sbatch --wrap=true argument
call sbatch --wrap=true --export
call sbatch --wrap=true --par
call sbatch --wrap=true --tim=5
call sbatch --wrap=true --no
call sbatch -Z --wrap=true
call sbatch -J
call sbatch --container-mounts=a --wrap=true
call sbatch --test-only job.sh
call sbatch --test-only --nodes=2 --gpus-per-node=1 job.sh
call sbatch --test-only --time=1-2 job.sh
call sbatch --test-only --partition=nowhere job.sh
call sbatch --version
call srun --nothing true
call srun --mpi=list
call srun --mpi=nothing true
call salloc --partition=nowhere true
call salloc --nothing true
""",
    "waiting": r"""
printf '#!/bin/bash\n#SBATCH -J sleepy -t 10 --gpus-per-node=2 --comment="a b" --mem=2G\n' >busy.sh
printf '#SBATCH -c 2 -N 2 --ntasks-per-node=2 --no-requeue\nsleep 60\n' >>busy.sh
submit a busy.sh x 'y z'
submit h --nodes=1 --hold --wrap=true
submit d --dependency=afterok:$a --wrap=true
submit b --begin=now+500 --wrap=true --nodes=2 --exclusive --time-min=1 --comment='a comment'
submit r --array=1-4%2 --hold --output='ar_%A_%a_%j_%x_%u.out' --wrap=true
later $a RUNNING
later $b PENDING
known $h
sleep 1
call squeue --noheader --jobs=$a --format='%i|%j|%u|%a|%P|%q|%t|%T|%r|%R|%l|%D|%C|%m|%N|%B|%b|%Z|%o|%k|%E|%f|%h'
call squeue --noheader --jobs=$h --format='%T|%r|%S|%N'
call squeue --noheader --jobs=$d --format='%T|%r|%S|%N|%E'
call squeue --noheader --jobs=$b --format='%T|%r|%S|%N|%k|%h|%D|%l'
call squeue --noheader --jobs=$a --format='%.5P [%10j] [%.3j] %8T'
call squeue --noheader --jobs=$r --format='%i %F %K %T %r'
call squeue --noheader --array --jobs=$r --format='%F %K %T %r'
call squeue --noheader --jobs=${r}_1 --format='%K %T %r'
call squeue --noheader --states=PENDING --jobs=$a,$h,$d,$b --format='%i %T'
call squeue --noheader --states=PD,R --jobs=$a,$h,$d,$b --sort=i --format='%i %t'
call squeue --noheader --name=sleepy --jobs=$a,$h --format=%i
call squeue --noheader --partition=short --format=%i
call squeue --jobs=$a
call squeue --noheader --jobs=$h,$d --format='%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R'
call squeue --start --jobs=$h
call squeue --long --noheader --jobs=$h
call squeue --noheader --jobs=$a --Format=jobid,name,state:20,timelimit
call squeue --noheader --jobs=$a --steps --format='%i %j %N'
call scontrol --oneliner show job $a
call scontrol show job $a
call scontrol --oneliner show job $h
call scontrol --oneliner show job $d
call scontrol --oneliner show job $b
call scontrol --oneliner show job $r
call sinfo
call sinfo --noheader --format='%P|%t|%T|%D|%N|%C'
call scontrol show job=$a
call scontrol write batch_script $a -
call scontrol write batch_script $a "$PWD/script"
call cat "$PWD/script"
call scontrol update JobId=$a TimeLimit=5
call squeue --noheader --jobs=$a --format=%l
call scontrol update JobId=$a TimeLimit=60
call scontrol update JobId=$h TimeLimit=00:07:00
call scontrol update JobId=$h Nothing=1
call scontrol requeue $a
call scontrol hold $b
call squeue --noheader --jobs=$b --format='%T|%r'
call sacct --noheader --parsable2 --jobs=$h --format=JobID,State,ExitCode,Elapsed,NodeList
call scancel $h
call squeue --noheader --states=all --jobs=$h --format='%T|%r|%N'
accounted $h
call sacct --noheader --parsable2 --jobs=$h --format=JobID,State,ExitCode,Elapsed,NodeList
call scancel $a
later $a CANCELLED
accounted $a
call squeue --noheader --states=all --jobs=$a --format='%T|%r|%N'
call squeue --noheader --jobs=$a --format='%T'
call scontrol --oneliner show job $a
call sacct --noheader --parsable2 --jobs=$a --format=JobID,State,ExitCode,NodeList
call cat slurm-$a.out
sleep 4
call squeue --noheader --states=all --jobs=$d --format='%T|%r'
call scancel --verbose $a
call scancel $d $b $r
""",
    "running": r"""
cat >job.sh <<'END'
#!/bin/bash
#SBATCH --job-name=first   --time=5 # a comment
#SBATCH -n 2
#SBATCH --output="out %j.txt"
echo "hello in $PWD with $SLURM_NTASKS tasks: $*"
#SBATCH --nodes=2
srun sh -c 'exit $((SLURM_PROCID * 3))'
exit 6
END
call sbatch --wait job.sh 1 'two three'
submit j job.sh
later $j FAILED
accounted $j
call cat "out $j.txt"
call squeue --noheader --states=all --jobs=$j --format='%T|%r|%N|%D|%C'
call scontrol --oneliner show job $j
call sacct --jobs=$j
call sacct --noheader --parsable2 --jobs=$j --format=JobID,State,ExitCode,NodeList
call sacct -n -P -X --jobs=$j --format=JobName,NNodes,Timelimit,State,ExitCode,DerivedExitCode,ReqTRES%90
call sacct -nP --jobs=$j --format=JobID,JobName,Partition,Account,AllocCPUS,NCPUS,NTasks,ReqMem,AllocTRES
call sbatch --wait --wrap='exit 4'
call sbatch --wait --wrap=true
submit n --output=/no/such/folder/x.out --wrap=true
later $n FAILED
accounted $n
call squeue --noheader --states=all --jobs=$n --format='%T|%r|%N'
call sacct --noheader --parsable2 --jobs=$n --format=JobID,State,ExitCode
call scontrol --oneliner show job $n
submit k --output=k.out --wrap='kill -9 $$'
later $k FAILED
accounted $k
call sacct --noheader --parsable2 --jobs=$k --format=JobID,State,ExitCode
tell='echo "$SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT up to $SLURM_ARRAY_TASK_MAX"'
submit r --array=1-3:2 --output='%A_%a.out' --wrap="$tell"
later ${r}_3 COMPLETED
later ${r}_1 COMPLETED
accounted ${r}_1
accounted ${r}_3
call cat ${r}_1.out ${r}_3.out
call sacct --noheader --parsable2 --allocations --jobs=$r --format=JobID,State
submit q --requeue --output=q.out --wrap='echo start; sleep 60'
later $q RUNNING
sleep 1
call scontrol requeue $q
later $q PENDING
call squeue --noheader --jobs=$q --format='%T|%r|%N'
scancel $q
submit w --export=NONE --output=w.out --wrap='echo "[$FOO][$SLURM_EXPORT_ENV]"; FOO=x srun sh -c "echo [\$FOO]"'
later $w COMPLETED FAILED
call cat w.out
FOO=bar BAZ=q submit e --export=FOO,X=1 --output=e.out --wrap='echo "[$FOO][$BAZ][$X][$SLURM_EXPORT_ENV]"'
later $e COMPLETED
call cat e.out
SBATCH_TIMELIMIT=7 SBATCH_JOB_NAME=env submit v --wrap=true --hold --job-name=own
call squeue --noheader --jobs=$v --format='%j %l'
scancel $v
""",
    "two nodes": r"""
cat >two.sh <<'END'
#!/bin/bash
#SBATCH -N 2 --ntasks=4 --ntasks-per-node=2 --gpus-per-node=2 -t 5 -o two.out
try() { echo "\$ $*"; "$@" 2>&1 | sort; echo "=> ${PIPESTATUS[0]}"; }
here='JOB_(ID|NAME|NODELIST|NUM|CPUS|GPUS|ACC|PART|QOS)|GPUS|CPUS_ON|NODEID|PROCID|LOCALID|GTIDS|NODELIST|STEP_(N|T|ID)'
here="^(CUDA_VIS|SLURM_(NTASKS|NNODES|TASKS_PER|$here))"
env | grep -E "$here" | sort
try scontrol show hostnames
try srun --nodes=2 --ntasks=4 --ntasks-per-node=2 -J foo --gpus-per-node=2 --mpi=pmix sh -c \
    'if [ $SLURM_PROCID = 3 ]; then env | grep -E "'"$here"'|^PMIX_RANK|^PMIX_NAMES|^SLURM_MPI"; fi'
try srun --label --nodes=2 --ntasks=4 --ntasks-per-node=2 sh -c \
    'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME'
try srun --mpi=pmi2 -N1 -n1 sh -c 'env | grep -E "^PMI_(RANK|SIZE|JOBID)|^SLURM_STEP_N|^SLURM_N"'
try srun --ntasks=4 sh -c 'exit $SLURM_PROCID'
try srun -N1 -n2 --kill-on-bad-exit=1 sh -c '[ $SLURM_PROCID != 1 ] || exit 5; exec sleep 60'
try srun -n1 -w n1 sh -c 'kill -9 $$'
try srun -n1 -w n1 sh -c 'kill -11 $$'
try srun -n1 -w n1 sh -c 'kill -15 $$'
try srun -n2 -N1 --output=step_%j_%s_%t.txt --job-name=x echo here
ls step_*
try srun -n40 echo here
try srun -N3 echo here
try srun -n1 -w n1 ./no-such-file
try srun -n1 -w n1 no-such-command
touch text
try srun -n1 -w n1 ./text
FOO=x try srun -n1 -N1 --export=ALL,BAR=y sh -c 'echo "[$FOO][$BAR]"'
try srun --nothing true
srun -n1 -N1 sleep 1 & srun -n1 -N1 sleep 1 & wait
exit 0
END
submit t two.sh
later $t COMPLETED
accounted $t
call cat two.out
call sacct -nP --jobs=$t --format=JobID,JobName,State,ExitCode,DerivedExitCode,NNodes,NTasks,AllocCPUS
call sacct --noheader --parsable2 --allocations --jobs=$t --format=AllocTRES,ReqCPUS,ReqNodes,WorkDir
""",
    "containers": r"""
cat >c.sh <<'END'
#!/bin/bash
#SBATCH -o c.out -t 5
I=registry.example.org#tensorrt-llm/devel:1.0
try() { echo "\$ $*"; "$@" 2>&1 | sort; echo "=> ${PIPESTATUS[0]}"; }
try srun --container-image=$I --container-workdir=$PWD --container-mounts=$PWD:$PWD --no-container-mount-home pwd
try srun --container-image=$I pwd
try srun --container-image=$I --container-mounts=/no/such:/x true
try srun --container-image=$I --container-mounts=no:/x true
try srun --container-image=$I --container-mounts=/tmp:x true
try srun --container-image=$I --container-mounts=/tmp:/x, true
try srun --container-image=$I --container-workdir=/no/such pwd
try srun --container-image=/no/such.sqsh true
try srun --container-image=registry.example.org#no/such:1 true
try srun --container-image=$I --container-mount-home --no-container-mount-home true
try srun --container-image=$I --container-name=c$SLURM_JOB_ID true
try srun --container-name=c$SLURM_JOB_ID pwd
try srun --container-name=nope pwd
try srun --container-mounts=/tmp:/x pwd
try srun --container-image=$I no-such-command
try srun --container-image=$I sh -c 'exit 7'
try srun --container-image=$I --container-image=x true
try srun --container-image=$I --container-save=$PWD/x.sqsh true
ls x.sqsh
END
submit c c.sh
later $c COMPLETED
call cat c.out
call sbatch --container-image=foo --test-only --wrap=true
""",
    "allocations": r"""
call srun echo here
call srun -n 2 -w n1 sh -c 'exit 3'
call salloc -n 1 true
call salloc -n 1 srun -n 1 echo here
call salloc -n 1 sh -c 'exit 9'
i=$(salloc -n 4 --no-shell 2>&1 | sed -n 's/.*Granted job allocation //p')
name i
call srun --jobid=$i -n 2 sh -c 'echo $SLURM_NTASKS in $SLURM_JOB_ID'
call squeue --noheader --jobs=$i --format='%j|%T|%N|%o|%Z'
call scontrol --oneliner show job $i
call scancel $i
call sh -c 'SLURM_JOB_ID=99999 srun true'
""",
    "time limit": r"""
submit t --time=1 --output=t.out --wrap='srun sleep 200; sleep 100'
sleep 60
later $t TIMEOUT
accounted $t
call squeue --noheader --states=all --jobs=$t --format='%T|%r|%N'
call sacct --noheader --parsable2 --jobs=$t --format=JobID,State,ExitCode
call scontrol --oneliner show job $t
call sort t.out
""",
}


def calls_of(section: str) -> list[str]:
    return [line.removeprefix("call ") for line in SECTIONS[section].splitlines() if line.startswith("call ")]


COMING_AND_GOING = (
    "job <?\\w+>? (queued|has been)", "Pending job", "Job allocation <id> has been revoked", "Force Terminated",
    "forcing job", "got SIG", "Job .* step creation", "Step created",
)  # fmt: skip
CALLS = [(section, number, call) for section in SECTIONS for number, call in enumerate(calls_of(section), 1)]


@dataclass
class Answer:
    out: str
    err: str
    code: str


@dataclass
class Side:
    """One of the two clusters: how to reach its login node, and what of it has to be taken out of its answers."""

    name: str
    ssh: list[str]
    env: Mapping[str, str]
    folder: str
    answers: dict[str, dict[int, Answer]]
    own: list[tuple[str, str]]
    beside: "Future[dict[int, Answer]] | None" = None

    def run(self, section: str) -> dict[int, Answer]:
        """The answers to the calls of a section; it is run once. The one that takes long runs beside the others."""
        if section == "running" and section not in self.answers:
            self.beside = ThreadPoolExecutor(1).submit(self.run_script, "time limit")
        if section not in self.answers:
            beside = self.beside if section == "time limit" else None
            self.answers[section] = beside.result() if beside else self.run_script(section)
        return self.answers[section]

    def run_script(self, section: str) -> dict[int, Answer]:
        folder = f"{self.folder}/{section.replace(' ', '-')}"
        put = f"mkdir -p {folder} && cd {folder} && cat >.script && bash .script"
        done = subprocess.run(
            [*self.ssh, put],
            input=PRELUDE + SECTIONS[section],
            env=dict(self.env),
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        assert not done.stderr, done.stderr
        return self.read(done.stdout, folder)

    def read(self, text: str, folder: str) -> dict[int, Answer]:
        ids = sorted(re.findall(r"^@@id (\w+) (\d+)$", text, re.MULTILINE), key=lambda pair: -int(pair[1]))
        found = re.findall(r"@@call (\d+)\n@@out\n(.*?)@@err\n(.*?)@@code (\d+)\n", text, re.DOTALL)
        answers = {}
        for number, out, err, code in found:
            both = [self.normalise(part, folder, ids) for part in (out, err)]
            answers[int(number)] = Answer(both[0], both[1], code)
        return answers

    def normalise(self, text: str, folder: str, ids: list[tuple[str, str]]) -> str:
        """Take out what no two clusters have in common; every rule has its reason."""
        for pattern, instead in (
            (re.escape(folder), "<folder>"),
            *self.own,
            # Times, and how long a thing took, to the minute.
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "<time>"),
            (r"(?<=RunTime=)00:0\d:\d\d|(?<= )0:0\d(?= )|00:00:0\d(?=\|)", "<a moment>"),
            (r"(AccrueTime|EligibleTime|LastSchedEval)=(<time>|Unknown)", r"\1=<time>"),
            # Ids: those of the section's own jobs by name, any other where Slurm tells one.
            *((rf"(?<!\d){job}(?!\d)", f"<{name}>") for name, job in ids),
            (r"(?<=batch job )\d+|(?<=allocation )\d+|(?<=sbatch: Job )\d+|(?<=for job )\d+(?=: More)", "<id>"),
            (r"(StepId=|STEP |pyxis_|slurm\.pmix\.)\d+(?=\.)", r"\1<id>"),
            # What the machine, the scheduler or the network decide.
            (r"\b4294\d{6}\b", "<priority>"),
            (r"AllocNode:Sid=\S+|Scheduler=\w+|(?<= )SchedNodeList=\S+ ", "<a detail>"),
            (r"child \d+ failed", "child <process> failed"),
            # The test cluster's slurmd has a node in its name, as several run on one host; its plugin another name.
            (r"slurmstepd-n\d:", "slurmstepd:"),
            (r"container_plugin\.so", "spank_pyxis.so"),
            # Lines that come and go with the load: waiting for an allocation or a step, and how a step was made to end.
            (rf"(?m)^(srun|salloc): ({'|'.join(COMING_AND_GOING)}).*\n", ""),
            # Names of users and ids are not of one length, so neither are the blanks beside them.
            (r"  +", " "),
        ):
            text = re.sub(pattern, instead, text)
        return text


@pytest.fixture(scope="module")
def real(cluster: dict[str, str]) -> Side:
    folder = f"{cluster['GEN_USER_ROOT']}/conformance-{os.getpid()}"
    client = f"{cluster['GEN_CLIENT_BIN']}/ssh"
    told = subprocess.run([client, cluster["GEN_SSH_HOST"], "id -u; id -g"], capture_output=True, text=True, check=True)
    uid, gid = told.stdout.split()
    name = subprocess.run(
        ["scontrol", "show", "config"], env={**os.environ, **cluster}, capture_output=True, text=True, check=True
    )
    found = re.search(r"ClusterName\s*= (\S+)", name.stdout)
    assert found
    subprocess.run([client, cluster["GEN_SSH_HOST"], USE_UP_IDS], capture_output=True, check=True)
    own = [
        (rf"(?<![-a-z]){cluster['GEN_USER']}\b", "<user>"),
        (rf"\({uid}\)|\b(?<=by ){uid}\b", "(uid)"),
        (rf"\({gid}\)", "(uid)"),
        (found[1], "<cluster>"),
    ]
    return Side("real", [client, cluster["GEN_SSH_HOST"]], {**os.environ, **cluster}, folder, {}, own)


@pytest.fixture(scope="module")
def practice(cluster: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    site = {
        "accounts": f"{cluster['GEN_ACCOUNT']} {cluster['GEN_ACCOUNT_INTERACTIVE']}",
        "images": cluster["GEN_REGISTRY_IMAGE"],
        "min_job_age": "600",
    }
    with Practice(tmp_path_factory.mktemp("practice") / "p", site=site, factor=4) as made:
        user = made.home_there.name
        own = [
            (rf"(?<![-a-z]){user}\b", "<user>"),
            (rf"\({os.getuid()}\)|\b(?<=by ){os.getuid()}\b", "(uid)"),
            (rf"\({os.getgid()}\)", "(uid)"),
            (r"\bpractice\b", "<cluster>"),
        ]
        ssh = str(made.folder / "bin" / "local" / "ssh")
        yield Side("practice", [ssh, "gen-login"], made.local_environment(), f"{made.home_there}/conformance", {}, own)


@pytest.mark.req("B5")
@pytest.mark.parametrize(
    ("section", "number", "call"), CALLS, ids=[f"{s}-{n}-{shlex.split(c)[0]}" for s, n, c in CALLS]
)
def test_a_call_is_answered_alike(real: Side, practice: Side, section: str, number: int, call: str) -> None:
    there, here = real.run(section)[number], practice.run(section)[number]
    assert here.code == there.code, (call, here.err, there.err)
    assert here.err == there.err, call
    assert here.out == there.out, call


def test_there_are_at_least_sixty_calls() -> None:
    assert len(CALLS) >= 60
