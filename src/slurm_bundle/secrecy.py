"""Turns the suspicion that a text is a secret into a refusal that does not show it.

A bundle is read and handed over by people; a secret in it would be in every copy. Values are passed by name instead
(`pass_env`), from the environment of whoever submits.
"""

import re

SECRET_PARTS = frozenset(
    {"TOKEN", "KEY", "APIKEY", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASS", "PASSPHRASE"}
    | {"CREDENTIAL", "CREDENTIALS"}
)

# How the tokens of widespread services begin. The length keeps plain words such as sk-learn out.
PREFIXES = r"hf_|gh[opsur]_|github_pat_|glpat-|nvapi-|sk-|xox[abprs]-|AKIA|AIza"
TOKEN = re.compile(rf"(?:{PREFIXES})[A-Za-z0-9_-]{{8,}}")
TOKEN_WITHIN = re.compile(rf"(?<![A-Za-z0-9_-])(?:{PREFIXES})[A-Za-z0-9_-]{{16,}}|-----BEGIN [A-Z ]*PRIVATE KEY-----")

WAY_OUT = "take it out, put its name into pass_env, and set it in the environment that you submit from"


def check_secret(name: str, value: str) -> None:
    """Refuse a variable that is a secret by its name (a word part such as KEY) or by how its value begins.

    Raises ValueError; the value is never part of the message. An empty value is no secret.
    """
    if not value:
        return
    part = next((part for part in name.upper().split("_") if part in SECRET_PARTS), None)
    if part:
        raise ValueError(f"looks like a secret by its name ({part}); its value must not be in a bundle: {WAY_OUT}")
    if TOKEN.match(value) or TOKEN_WITHIN.search(value):
        raise ValueError(f"looks like a secret by its value (not shown), which must not be in a bundle: {WAY_OUT}")


def find_secret(text: str) -> str | None:
    """Say that a token stands somewhere in a text such as a command, None where none does."""
    if not TOKEN_WITHIN.search(text):
        return None
    return f"holds what looks like a secret (not shown), which must not be in a bundle: {WAY_OUT}, write $NAME for it"
