"""The scenarios: what goes wrong in a rehearsal, as data, and how a bundle has to end then.

A scenario is a few faults (standins/faults.py says what each field means) and its ends: for each run of run_all.sh the
exit code and the status. Where there are two, the first run stops and the second goes on from there; `between` is what
the user does meanwhile. `needs` names what a bundle must have for the scenario to mean anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from slurm_bundle.rehearsal.contents import Contents

Fault = Mapping[str, str]
End = tuple[int, str]  # exit code of run_all.sh, and the status; an empty one where nothing was concluded

PASSED: End = (0, "PASSED")
LIMIT = "limit"  # the clock flies to the time limit of the job
TIMED_OUT = "Socket timed out on send/recv operation"


@dataclass(frozen=True)
class Scenario:
    name: str
    what: str
    faults: tuple[Fault, ...] = ()
    ends: tuple[End, ...] = (PASSED,)
    needs: str = ""
    between: str = ""

    def applies(self, contents: Contents) -> bool:
        """Whether the bundle has what the scenario is about."""
        return {
            "": True,
            "build": contents.has_build,
            "container": contents.has_container,
            "hang": bool(contents.values.get("HANG_PATTERNS")),
        }[self.needs]

    def ends_for(self, contents: Contents) -> tuple[End, ...]:
        """How this bundle has to end: without a way to log in, a site that asks for a code cannot be reached at all."""
        if self.name == "mfa-needed" and contents.mfa == "no":
            return ((3, ""),)
        return self.ends

    def faults_for(self, contents: Contents) -> tuple[Fault, ...]:
        """The faults, with what differs from bundle to bundle filled in."""
        watch = str(int(contents.value("MONITOR_SECONDS", "86400")) + 60)
        return tuple({name: value.replace("{watch}", watch) for name, value in fault.items()} for fault in self.faults)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("success", "nothing goes wrong"),
        Scenario(
            "build-failure",
            "the compiler finds an error",
            (
                {
                    "on": "play",
                    "kind": "build",
                    "what": "fail",
                    "code": "2",
                    "text": "part_3.c:7:1: error: expected ';'",
                },
            ),
            ((6, "BUILD_FAILED"),),
            needs="build",
        ),
        Scenario(
            "job-failure",
            "the command ends with exit code 1",
            ({"on": "play", "kind": "job", "what": "fail", "code": "1", "text": "Traceback (most recent call last):"},),
            ((1, "FAILED"),),
        ),
        Scenario(
            "hang",
            "the job says that it hangs, and goes on forever",
            ({"on": "play", "kind": "job", "what": "hang"},),
            ((9, "HANG_DETECTED"),),
            needs="hang",
        ),
        Scenario(
            "hang-in-err",
            "as hang, but it is said in the error log",
            ({"on": "play", "kind": "job", "what": "hang-in-err"},),
            ((9, "HANG_DETECTED"),),
            needs="hang",
        ),
        Scenario(
            "out-of-memory",
            "the job takes more memory than it asked for",
            (
                {
                    "on": "job",
                    "kind": "job",
                    "at": "40",
                    "state": "OUT_OF_MEMORY",
                    "text": "slurmstepd: error: Detected 1 oom_kill event. Some of the tasks have been OOM Killed.",
                },
            ),
            ((10, "OUT_OF_MEMORY"),),
        ),
        Scenario(
            "timeout",
            "the job runs into its time limit",
            (
                {"on": "play", "kind": "job", "what": "forever"},
                {"on": "job", "kind": "job", "at": "60", "fly": LIMIT},
            ),
            ((8, "TIMEOUT"),),
        ),
        Scenario(
            "pending-long",
            "the cluster is full for longer than the job is watched",
            ({"on": "job", "kind": "job", "pending": "forever", "start": "172800", "at": "150", "fly": "{watch}"},),
            ((8, "TIMEOUT"),),
        ),
        Scenario(
            "preempted",
            "the job has to make room for one of higher priority",
            ({"on": "job", "kind": "job", "at": "40", "state": "PREEMPTED"},),
            ((12, "ERROR"),),
        ),
        Scenario(
            "node-failure",
            "a node of the job goes down",
            ({"on": "job", "kind": "job", "at": "40", "state": "NODE_FAIL"},),
            ((12, "ERROR"),),
        ),
        Scenario(
            "container-not-started",
            "the container of the job does not start, and Slurm calls that a success",
            (
                {
                    "on": "srun",
                    "while": "job",
                    "code": "0",
                    "err": "srun: error: task 0 launch failed: Plugin initialization failed\n",
                },
            ),
            ((1, "FAILED"),),
            needs="container",
        ),
        Scenario(
            "ssh-drop-during-sync",
            "the connection breaks while the code is sent; then it is run again",
            ({"on": "ssh", "match": "bash -s", "after": "1", "times": "1", "drop": "9000"},),
            ((13, ""), PASSED),
        ),
        Scenario(
            "ssh-drop-during-monitor",
            "the network is gone for three looks at the job",
            (
                {
                    "on": "ssh",
                    "match": "bash -s",
                    "while": "job",
                    "times": "3",
                    "code": "255",
                    "err": "ssh: connect to host login port 22: Network is unreachable\n",
                },
            ),
        ),
        Scenario(
            "mfa-needed",
            "the site asks for a second factor, and nobody has logged in; then somebody does, and it is run again",
            (),
            ((4, ""), PASSED),
            between="login",
        ),
        Scenario(
            "accounting-off",
            "the site keeps no accounts, so sacct says nothing",
            ({"on": "sacct", "code": "1", "err": "Slurm accounting storage is disabled\n"},),
        ),
        Scenario(
            "slurmctld-slow",
            "the controller answers late: sbatch's answer is lost, and squeue has none for two times",
            (
                {
                    "on": "sbatch",
                    "times": "1",
                    "delay": "10",
                    "do": "yes",
                    "err": f"sbatch: error: Batch job submission failed: {TIMED_OUT}\n",
                },
                {
                    "on": "squeue",
                    "while": "job",
                    "times": "2",
                    "delay": "10",
                    "err": f"slurm_load_jobs error: {TIMED_OUT}\n",
                },
            ),
        ),
        Scenario(
            "quota-exceeded",
            "the disk on the cluster is full",
            (
                {
                    "on": "git",
                    "side": "login",
                    "match": "checkout --force",
                    "code": "128",
                    "err": "error: unable to write file hello.py\nfatal: cannot create file: Disk quota exceeded\n",
                },
            ),
            ((5, ""),),
        ),
        Scenario(
            "push-rejected",
            "origin takes no new branch",
            (
                {
                    "on": "origin",
                    "err": "error: GH013: Repository rule violations found: creating branches is not allowed",
                },
            ),
            ((5, ""),),
        ),
        Scenario(
            "noisy-login",
            "the shell there greets everybody, on stdout, without an end of the line",
            (
                {
                    "on": "ssh",
                    "match": "bash -s",
                    "noise": "yes",
                    "out": "Welcome to Stampede3\nSubmitted batch job 99\n12\n@@gen job=7 (no end of the line)",
                    "err": "Last login: Tue Dec  1 12:00:00 from laptop\n",
                },
            ),
        ),
    )
}
