"""Times and sizes as Slurm reads and writes them."""

import time

UNLIMITED = -1


def read_limit(text: str) -> int | None:
    """Seconds of a time limit (M, M:S, H:M:S, D-H, D-H:M, D-H:M:S), rounded up to minutes; None where it is none."""
    if text.lower() in ("infinite", "unlimited", "-1"):
        return UNLIMITED
    days, dash, rest = text.partition("-") if "-" in text else ("0", "", text)
    parts = rest.split(":")
    if not days.isdigit() or not all(part.isdigit() for part in parts) or len(parts) > 3:
        return None
    numbers = [int(part) for part in parts]
    if dash:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
    elif len(numbers) == 3:
        hours, minutes, seconds = numbers
    else:
        hours, (minutes, seconds) = 0, [*numbers, 0][:2]
    total = ((int(days) * 24 + hours) * 60 + minutes) * 60 + seconds
    return -(-total // 60) * 60


def read_begin(text: str, now: float) -> float | None:
    """When a job may start: now, now+N[minutes...], or YYYY-MM-DD[THH:MM[:SS]]; None where it is none of these."""
    if text == "now":
        return now
    if text.startswith("now+"):
        digits = text[4:].rstrip("abcdefghijklmnopqrstuvwxyz")
        unit = text[4 + len(digits) :]
        factor = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}.get(unit[:1])
        return now + int(digits) * factor if digits.isdigit() and factor else None
    for layout in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"):
        try:
            return time.mktime(time.strptime(text, layout))
        except ValueError:
            continue
    return None


def show_stamp(moment: float | None, *, unknown: str = "N/A") -> str:
    return unknown if moment is None else time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moment))


def show_short(seconds: float) -> str:
    """As squeue does: 0:02, 10:00, 1:00:00, 1-00:00:00."""
    if seconds < 0:
        return "UNLIMITED"
    days, hours, minutes, rest = split(seconds)
    if days:
        return f"{days}-{hours:02d}:{minutes:02d}:{rest:02d}"
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def show_long(seconds: float) -> str:
    """As sacct and scontrol do: 00:00:02, 1-00:00:00."""
    if seconds < 0:
        return "UNLIMITED"
    days, hours, minutes, rest = split(seconds)
    return (f"{days}-" if days else "") + f"{hours:02d}:{minutes:02d}:{rest:02d}"


def split(seconds: float) -> tuple[int, int, int, int]:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return days, hours, minutes, rest


def read_memory(text: str) -> int | None:
    """Megabytes of 100, 100M, 2G, 1T or 512K; None where it is none of these."""
    digits, unit = (text[:-1], text[-1].upper()) if text[-1:].upper() in tuple("KMGT") else (text, "M")
    if not digits.isdigit():
        return None
    number = int(digits)
    return {"K": -(-number // 1024), "M": number, "G": number * 1024, "T": number * 1024 * 1024}[unit]


def show_memory(megabytes: int) -> str:
    """2G, 2000M: the largest unit that leaves a whole number."""
    for unit in ("M", "G"):
        if megabytes % 1024 or not megabytes:
            return f"{megabytes}{unit}"
        megabytes //= 1024
    return f"{megabytes}T"


def show_total_memory(megabytes: int) -> str:
    """As for a node or a partition: 125G, 62.50G."""
    if megabytes < 1024:
        return f"{megabytes}M"
    size = megabytes / 1024
    return f"{int(size)}G" if size == int(size) else f"{size:.2f}G"
