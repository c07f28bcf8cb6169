"""Lists of hosts: n[1-3,07-09],x2 and the names that they stand for."""


def split_list(text: str) -> list[str]:
    """The parts of a comma list; commas in brackets do not count."""
    parts, depth, part = [], 0, ""
    for character in text:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append(part)
            part = ""
        else:
            part += character
    return [part for part in [*parts, part] if part]


def expand(text: str) -> list[str]:
    """n[1-3],x2 -> n1 n2 n3 x2"""
    names: list[str] = []
    for part in split_list(text):
        head, bracket, rest = part.partition("[")
        if not bracket:
            names.append(part)
            continue
        inside, _, tail = rest.partition("]")
        for piece in inside.split(","):
            first, _, last = piece.partition("-")
            for number in range(int(first), int(last or first) + 1):
                names += expand(f"{head}{number:0{len(first)}d}{tail}")
    return names


def compress(names: list[str]) -> str:
    """n1 n2 n3 x2 -> n[1-3],x2; in the order given, neighbours with one prefix together."""
    groups: list[tuple[str, list[str]]] = []
    for name in names:
        prefix = name.rstrip("0123456789")
        digits = name[len(prefix) :]
        if groups and groups[-1][0] == prefix and digits and groups[-1][1][-1]:
            groups[-1][1].append(digits)
        else:
            groups.append((prefix, [digits]))
    return ",".join(
        prefix + (numbers[0] if len(numbers) == 1 else f"[{ranges(numbers)}]") for prefix, numbers in groups
    )


def ranges(numbers: list[str]) -> str:
    """1 2 3 7 -> 1-3,7"""
    runs: list[list[str]] = []
    for number in numbers:
        last = runs[-1][-1] if runs else ""
        if last and len(last) == len(f"{int(number) - 1:0{len(last)}d}") and int(number) == int(last) + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def counts(numbers: list[int]) -> str:
    """2 2 1 -> 2(x2),1"""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][0] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return ",".join(f"{number}(x{times})" if times > 1 else str(number) for number, times in runs)


def expand_counts(text: str) -> list[int]:
    """2(x2),1 -> 2 2 1"""
    numbers: list[int] = []
    for part in text.split(","):
        number, _, times = part.partition("(x")
        numbers += [int(number)] * int(times.rstrip(")") or 1)
    return numbers
