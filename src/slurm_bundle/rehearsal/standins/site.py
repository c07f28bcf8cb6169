"""What the practice cluster is made of: nodes, partitions, accounts; a record in PLACE/slurm/site.

nodes=n[1-2]  cpus=16  memory=64000  gpus=8
partitions=batch:14400:1800 short:1800:300   name, longest and usual time limit in seconds; the first is the default
accounts=a b            those that may submit; empty: any
images=...              container images that there are, a blank between them; empty: any
features=...            of every node, as --constraint may name them; empty: any
pending=0 configuring=0 how long a job is in these states, at least
min_job_age kill_wait extern mpi version cluster
"""

from slurm_bundle.rehearsal.standins.hostlist import expand
from slurm_bundle.rehearsal.standins.place import Place
from slurm_bundle.rehearsal.standins.records import load_record

DEFAULTS = {
    "cluster": "practice",
    "version": "slurm-wlm 22.05.8",
    "nodes": "n[1-2]",
    "cpus": "16",
    "memory": "64000",
    "memory_per_cpu": "1000",
    "gpus": "8",
    "partitions": "batch:14400:1800 short:1800:300",
    "accounts": "",
    "images": "",
    "features": "",
    "lenient": "",
    "pending": "0",
    "configuring": "0",
    "min_job_age": "300",
    "kill_wait": "2",
    "extern": "",
    "mpi": "pmix none cray_shasta pmi2",
}


class Partition:
    def __init__(self, name: str, longest: int, usual: int, *, default: bool) -> None:
        self.name, self.longest, self.usual, self.default = name, longest, usual, default


class Site:
    def __init__(self, place: Place) -> None:
        self.values = {**DEFAULTS, **load_record(f"{place.slurm}/site")}
        self.nodes = expand(self.values["nodes"])
        self.cpus = self.number("cpus")
        self.memory = self.number("memory")
        self.gpus = self.number("gpus")
        self.partitions: list[Partition] = []
        for word in self.values["partitions"].split():
            name, longest, usual = word.split(":")
            self.partitions.append(Partition(name, int(longest), int(usual), default=not self.partitions))

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    def number(self, name: str) -> int:
        return int(self.values[name])

    def words(self, name: str) -> list[str]:
        return self.values[name].split()

    def partition(self, name: str) -> Partition | None:
        return next((partition for partition in self.partitions if partition.name == name), None)
