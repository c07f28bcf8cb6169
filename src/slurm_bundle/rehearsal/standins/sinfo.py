"""sinfo: partitions and nodes."""

import time

from slurm_bundle.rehearsal.standins.clock import Clock
from slurm_bundle.rehearsal.standins.getopt import Options, Parser
from slurm_bundle.rehearsal.standins.hostlist import compress
from slurm_bundle.rehearsal.standins.jobs import Jobs
from slurm_bundle.rehearsal.standins.place import Place, StopError
from slurm_bundle.rehearsal.standins.scheduler import used
from slurm_bundle.rehearsal.standins.site import Partition, Site
from slurm_bundle.rehearsal.standins.squeue import read_layout, show
from slurm_bundle.rehearsal.standins.times import show_short

TABLE = """all.a clusters=M dead.d exact.e federation. format=o Format=O help. hide. iterate=i json. list-reasons.R
local. long.l noconvert. Node.N noheader.h nodes=n partition=p reservation.T responding.r sort=S states=t summarize.s
usage. verbose.v version.V yaml."""
PLAIN = "%9P %.5a %.10l %.6D %.6t %N"
SUMMARY = "%9P %.5a %.10l %.16F %N"
BY_NODE = "%N %.6D %.9P %6t"
BY_NODE_LONG = "%N %.6D %.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
HEADINGS = {
    "P": "PARTITION", "R": "PARTITION", "a": "AVAIL", "l": "TIMELIMIT", "D": "NODES", "t": "STATE", "T": "STATE",
    "N": "NODELIST", "G": "GRES", "c": "CPUS", "m": "MEMORY", "f": "AVAIL_FEATURES", "b": "ACTIVE_FEATURES",
    "C": "CPUS(A/I/O/T)", "F": "NODES(A/I/O/T)", "z": "S:C:T", "d": "TMP_DISK", "w": "WEIGHT", "E": "REASON",
    "X": "SOCKETS", "Y": "CORES", "Z": "THREADS", "n": "HOSTNAMES", "h": "OVERSUBSCRIBE", "s": "JOB_SIZE",
    "r": "ROOT", "A": "NODES(A/I)", "g": "GROUPS", "L": "DEFAULTTIME", "e": "FREE_MEM",
    "O": "CPU_LOAD", "S": "ALLOCNODES",
}  # fmt: skip


def run(place: Place, words: list[str]) -> int:
    options = Parser("sinfo", TABLE, permute=True).parse(words)
    site = Site(place)
    if "version" in options:
        print(site["version"])
        return 0
    with place.lock():
        taken = used(site, Jobs(place).all())
    if "long" in options and "noheader" not in options:
        print(time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(Clock(place).now())))
    fields = read_layout(choose_layout(options))
    by_node = "Node" in options
    if by_node and "format" not in options:
        width = max([9, *map(len, site.nodes)])
        fields = [(letter, width if letter == "N" else size, right, text) for letter, size, right, text in fields]
    if "noheader" not in options:
        print(show(fields, [HEADINGS.get(letter, "") for letter, *_ in fields]))
    for partition, nodes in groups(site, options, taken, by_node=by_node):
        print(show(fields, [value_of(letter, site, partition, nodes, taken) for letter, *_ in fields]))
    return 0


def choose_layout(options: Options) -> str:
    if "Format" in options:
        raise StopError(1, "sinfo: error: --Format is not known on a practice cluster; use --format")
    by_node = BY_NODE_LONG if "long" in options else BY_NODE
    return options.get("format") or (by_node if "Node" in options else SUMMARY if "summarize" in options else PLAIN)


def groups(
    site: Site, options: Options, taken: dict[str, list[int]], *, by_node: bool
) -> list[tuple[Partition, list[str]]]:
    """The rows: for each partition the nodes in one state together, or each node for itself."""
    wanted = options.get("partition")
    partitions = [p for p in site.partitions if wanted is None or p.name in wanted.split(",")]
    if by_node:
        return [(partition, [node]) for node in site.nodes for partition in partitions]
    rows = []
    for partition in partitions:
        by_state: dict[str, list[str]] = {}
        for node in site.nodes:
            state = "" if "summarize" in options else state_of(site, taken[node])
            by_state.setdefault(state, []).append(node)
        rows += [(partition, by_state[state]) for state in ("", "mixed", "allocated", "idle") if state in by_state]
    return rows


def state_of(site: Site, taken: list[int]) -> str:
    return "idle" if not taken[0] else "allocated" if taken[0] >= site.cpus else "mixed"


def value_of(letter: str, site: Site, partition: Partition, nodes: list[str], taken: dict[str, list[int]]) -> str:
    busy = sum(taken[node][0] for node in nodes)
    total = site.cpus * len(nodes)
    at_work = len([node for node in nodes if taken[node][0]])
    state = state_of(site, taken[nodes[0]])
    values = {
        "P": partition.name + ("*" if partition.default else ""), "R": partition.name, "a": "up",
        "l": "infinite" if partition.longest < 0 else show_short(partition.longest), "L": show_short(partition.usual),
        "D": str(len(nodes)), "T": state, "t": {"mixed": "mix", "allocated": "alloc"}.get(state, state),
        "N": compress(nodes), "n": nodes[0], "G": f"gpu:{site.gpus}" if site.gpus else "(null)", "c": str(site.cpus),
        "m": str(site.memory), "f": site["features"].replace(" ", ",") or "(null)",
        "C": f"{busy}/{total - busy}/0/{total}", "b": site["features"].replace(" ", ",") or "(null)",
        "F": f"{at_work}/{len(nodes) - at_work}/0/{len(nodes)}",
        "A": f"{at_work}/{len(nodes) - at_work}", "z": f"2:{site.cpus // 2}:1", "d": "0", "w": "1", "E": "none",
        "X": "2", "Y": str(site.cpus // 2), "Z": "1", "h": "NO", "s": "1-infinite", "r": "no", "g": "all", "S": "all",
        "e": str(site.memory), "O": "0.00",
    }  # fmt: skip
    return values.get(letter, "")
