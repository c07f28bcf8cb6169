"""Options as GNU getopt_long reads them: --name value, --name=value, unique beginnings of names, -x value, -xy.

A table of options is a text of words: NAME, then = (takes a value), ? (may have one after =) or . (takes none), then
its letters: `time=t hold.H nice?`.
"""

from slurm_bundle.rehearsal.standins.place import StopError


class Options:
    """What a command line says: the value of each option by its name ("" for one without), and the other words."""

    def __init__(self) -> None:
        self.given: list[tuple[str, str]] = []
        self.rest: list[str] = []

    def get(self, name: str, default: str | None = None) -> str | None:
        """The last value that was given."""
        return next((value for given, value in reversed(self.given) if given == name), default)

    def __contains__(self, name: str) -> bool:
        return any(given == name for given, _ in self.given)


class Parser:
    def __init__(self, command: str, table: str, *, code: int = 1, permute: bool = False) -> None:
        self.command, self.code, self.permute = command, code, permute
        self.kinds: dict[str, str] = {}
        self.letters: dict[str, str] = {}
        for word in table.split():
            mark = next(character for character in word if character in "=?.")
            name, _, letters = word.partition(mark)
            self.kinds[name] = mark
            self.letters.update(dict.fromkeys(letters, name))

    def refuse(self, text: str) -> StopError:
        return StopError(self.code, f"{self.command}: {text}", f'Try "{self.command} --help" for more information')

    def parse(self, words: list[str]) -> Options:
        """Read the options; without `permute` the first other word ends them. Raises StopError as getopt says it."""
        options, queue = Options(), list(words)
        while queue:
            word = queue.pop(0)
            if word == "--":
                break
            if word.startswith("--"):
                self.read_long(word, queue, options)
            elif word.startswith("-") and word != "-":
                self.read_short(word[1:], queue, options)
            elif self.permute:
                options.rest.append(word)
            else:
                queue.insert(0, word)
                break
        options.rest += queue
        return options

    def read_long(self, word: str, queue: list[str], options: Options) -> None:
        name, equals, value = word[2:].partition("=")
        found = [name] if name in self.kinds else [known for known in self.kinds if known.startswith(name)]
        if not found:
            raise self.refuse(f"unrecognized option '--{name}'")
        if len(found) > 1:
            choice = " ".join(f"'--{known}'" for known in found)
            raise self.refuse(f"option '{word}' is ambiguous; possibilities: {choice}")
        kind = self.kinds[found[0]]
        if kind == "." and equals:
            raise self.refuse(f"option '--{found[0]}' doesn't allow an argument")
        if kind == "=" and not equals:
            if not queue:
                raise self.refuse(f"option '--{found[0]}' requires an argument")
            value = queue.pop(0)
        options.given.append((found[0], value))

    def read_short(self, letters: str, queue: list[str], options: Options) -> None:
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter not in self.letters:
                raise self.refuse(f"invalid option -- '{letter}'")
            name = self.letters[letter]
            value = ""
            if self.kinds[name] == "?":
                value, letters = letters, ""
            elif self.kinds[name] == "=":
                if not letters and not queue:
                    raise self.refuse(f"option requires an argument -- '{letter}'")
                value, letters = letters or queue.pop(0), ""
            options.given.append((name, value))
