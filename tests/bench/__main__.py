"""Turns the words behind scripts/bench into the parts that are measured, one after the other."""

import argparse
from collections.abc import Callable, Mapping

from tests.bench.many import measure_many
from tests.bench.start import measure_start
from tests.bench.table import Options, Part, show

# A further part is a function of a module of its own, and a line here and in scripts/bench.
PARTS: Mapping[str, Callable[[Options], Part]] = {"start": measure_start, "many": measure_many}


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; without one, all of them")
    parser.add_argument("--rounds", type=int, default=15, help="how often each thing is measured (15)")
    parser.add_argument("--bundles", type=int, default=1000, help="how many are made in one process (1000)")
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; give some of {', '.join(PARTS)}")
    for name in given.parts or PARTS:
        show(name, PARTS[name](Options(given.rounds, given.bundles)))


if __name__ == "__main__":
    main()
