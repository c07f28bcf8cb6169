"""Turns a time limit as Slurm (or a person) writes it into seconds, and back.

The grammar is that of `sbatch --time` (https://slurm.schedmd.com/sbatch.html): M, M:S, H:M:S, D-H, D-H:M, D-H:M:S.
Beyond it the unambiguous forms 2h, 90m, 1d, 1d12h and 3600s are taken, which Slurm itself refuses. Slurm counts limits
in whole minutes, rounded up, and computes them in 32 bits: beyond 68 years it takes a wrong one without a word (tried
with 22.05).
"""

import re

MINUTE, HOUR, DAY = 60, 3600, 86400
LONGEST = 2**31 - MINUTE

UNLIMITED_WORDS = ("UNLIMITED", "INFINITE", "-1")

# Nine digits at most: more than any cluster's limit, and never a number that Python refuses to convert.
NUMBER = "[0-9]{1,9}"
UNITS = re.compile(
    rf"(?:(?P<d>{NUMBER})d)?(?:(?P<h>{NUMBER})h)?(?:(?P<m>{NUMBER})m)?(?:(?P<s>{NUMBER})s)?", re.IGNORECASE
)
CLOCK = re.compile(rf"{NUMBER}(?::{NUMBER}){{0,2}}")
DAYS_AND_CLOCK = re.compile(rf"({NUMBER})-({NUMBER})(?::({NUMBER}))?(?::({NUMBER}))?")

FORMS = "give H:M:S such as 02:00:00, D-H:M:S such as 1-12:00:00, or 2h, 90m, 1d, UNLIMITED"


def parse_walltime(text: str) -> int | None:
    """Give the seconds of a time limit, None for no limit.

    Zero in any form is no limit to Slurm. Raises ValueError, saying which forms there are, for everything else.
    """
    if text.upper() in UNLIMITED_WORDS:
        return None
    seconds = read_slurm_form(text)
    if seconds is None:
        seconds = read_units(text)
    if seconds is None:
        raise ValueError(f"{text[:40]!r} is no time limit; {suggest_form(text)}")
    if seconds > LONGEST:
        raise ValueError(f"{text!r} is longer than Slurm can count ({LONGEST // DAY} days); give less, or UNLIMITED")
    return seconds or None


def parse_duration(text: str) -> int:
    """Give the seconds (1 or more) of a duration: 1h, 30m, 3600s, 1h30m or H:M:S.

    A bare number and M:S are refused with ValueError: they mean one thing to Slurm and another to people.
    """
    seconds = read_units(text)
    if seconds is None and CLOCK.fullmatch(text) and text.count(":") == 2:
        seconds = read_slurm_form(text)
    if seconds is None:
        hint = f"for seconds write {text}s" if text.isdecimal() else "give 1h, 30m, 3600s or H:M:S such as 01:00:00"
        raise ValueError(f"{text[:40]!r} is no duration; {hint}")
    if seconds == 0:
        raise ValueError(f"{text!r} is not allowed; give one second or more")
    return seconds


def format_walltime(seconds: int | None) -> str:
    """Give seconds as HH:MM:SS or D-HH:MM:SS, and None as UNLIMITED: forms that Slurm reads in one way only."""
    if seconds is None:
        return "UNLIMITED"
    days, rest = divmod(seconds, DAY)
    clock = f"{rest // HOUR:02d}:{rest % HOUR // MINUTE:02d}:{rest % MINUTE:02d}"
    return f"{days}-{clock}" if days else clock


def explain_walltime(text: str) -> str | None:
    """Give a remark for a valid form that means something else to Slurm than people expect, None for all others."""
    seconds = parse_walltime(text)
    if seconds is None:
        return (
            None if text.upper() == "UNLIMITED" else f"{text} is no limit to Slurm; to say so plainly write UNLIMITED"
        )
    if text.isdecimal():
        return explain_bare_number(int(text), seconds)
    rounded = f", rounded up to {count(-(-seconds // MINUTE), 'minute')}" if seconds % MINUTE else ""
    if CLOCK.fullmatch(text) and text.count(":") == 1:
        first, second = text.split(":")
        to_slurm = say_both(int(first), "minute", int(second), "second")
        to_people = say_both(int(first), "hour", int(second), "minute")
        return f"{text} is {to_slurm} to Slurm{rounded}; for {to_people} write {first}:{second}:00"
    # In a limit of hours nobody misses the rest of a minute: 23:59:59 is written to stay below a day.
    return f"{text} is {count(seconds, 'second')} to Slurm{rounded}" if rounded and seconds < HOUR else None


def explain_bare_number(number: int, seconds: int) -> str:
    meaning = f"{number} is {count(number, 'minute')} ({format_walltime(seconds)}) to Slurm"
    if number >= HOUR:
        return f"{meaning}; for {number} seconds write {number}s"
    return f"{meaning}; for {count(number, 'hour')} write {number}h" if number <= 72 else meaning


def say_both(large: int, large_noun: str, small: int, small_noun: str) -> str:
    """Say `1 hour 30 minutes`, without the part that is zero."""
    return " ".join(count(number, noun) for number, noun in ((large, large_noun), (small, small_noun)) if number)


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def read_slurm_form(text: str) -> int | None:
    """Give the seconds of one of Slurm's six forms, None for any other text."""
    if CLOCK.fullmatch(text):
        numbers = [int(number) for number in text.split(":")]
        match numbers:
            case [minutes]:
                return minutes * MINUTE
            case [minutes, seconds]:
                return minutes * MINUTE + seconds
            case _:
                hours, minutes, seconds = numbers
                return hours * HOUR + minutes * MINUTE + seconds
    found = DAYS_AND_CLOCK.fullmatch(text)
    if found:
        days, hours, minutes, seconds = (int(number or 0) for number in found.groups())
        return days * DAY + hours * HOUR + minutes * MINUTE + seconds
    return None


def read_units(text: str) -> int | None:
    """Give the seconds of a form such as 1d12h, None for any other text."""
    found = UNITS.fullmatch(text)
    if not found or not text:
        return None
    days, hours, minutes, seconds = (int(found[unit] or 0) for unit in "dhms")
    return days * DAY + hours * HOUR + minutes * MINUTE + seconds


def suggest_form(text: str) -> str:
    """Say what to write in place of a form that Slurm does not know."""
    worded = re.fullmatch(rf"({NUMBER})\s*(d|h|m|s|min|sec|hr)(?:ay|our|inute|econd)?s?", text.strip(), re.IGNORECASE)
    if worded:
        return f"write {worded[1]}{worded[2][0].lower()}"
    return FORMS
