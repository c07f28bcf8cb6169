"""Writing a bundle: one verb a file, and nothing lost that was there."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurm_bundle import bundle
from slurm_bundle.bundle import write_bundle
from slurm_bundle.problems import BundleConflict, GenError
from slurm_bundle.render import BundleFile


def files(**texts: str) -> list[BundleFile]:
    """Files with these texts, and their manifest; `_` in a name is a folder."""
    made = [BundleFile(name.replace("_", "/") + ".sh", text, 0o755, "local") for name, text in texts.items()]
    entries = [{"path": file.path, "sha256": hashlib.sha256(file.text.encode()).hexdigest()} for file in made]
    return [*made, BundleFile("MANIFEST.json", json.dumps({"files": entries}), 0o644, "text")]


def verbs(changes: tuple[bundle.Change, ...]) -> dict[str, str]:
    return {change.path: change.verb for change in changes if change.path != "MANIFEST.json"}


def test_the_first_run_creates_and_a_second_run_reports_unchanged(tmp_path: Path) -> None:
    out = tmp_path / "a" / "out"
    assert verbs(write_bundle(files(run="1", login_x="2"), out)) == {"run.sh": "create", "login/x.sh": "create"}
    assert (out / "run.sh").stat().st_mode & 0o777 == 0o755
    assert verbs(write_bundle(files(run="1", login_x="2"), out)) == {"run.sh": "unchanged", "login/x.sh": "unchanged"}
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["out"]


def test_another_spec_updates_creates_and_removes(tmp_path: Path) -> None:
    write_bundle(files(run="1", login_x="2"), tmp_path / "out")
    changed = verbs(write_bundle(files(run="new", more="3"), tmp_path / "out"))
    assert changed == {"run.sh": "update", "more.sh": "create", "login/x.sh": "remove"}
    assert not (tmp_path / "out" / "login").exists()


def test_an_edited_file_is_a_conflict_that_names_it_and_nothing_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_bundle(files(run="1", other="2"), out)
    (out / "run.sh").write_text("edited")
    with pytest.raises(BundleConflict, match=r"run\.sh") as caught:
        write_bundle(files(run="new", other="new"), out)
    assert caught.value.exit_code == 2
    assert (out / "run.sh").read_text() == "edited"
    assert (out / "other.sh").read_text() == "2"
    write_bundle(files(run="new", other="new"), out, force=True)
    assert (out / "run.sh").read_text() == "new"


def test_an_edited_file_that_would_go_is_a_conflict_too(tmp_path: Path) -> None:
    write_bundle(files(run="1", old="2"), tmp_path / "out")
    (tmp_path / "out" / "old.sh").write_text("edited")
    with pytest.raises(BundleConflict, match=r"old\.sh"):
        write_bundle(files(run="1"), tmp_path / "out")


def test_a_folder_that_gen_did_not_write_is_a_conflict(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    with pytest.raises(BundleConflict, match=r"thesis\.txt"):
        write_bundle(files(run="1"), out)
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]
    write_bundle(files(run="1"), out, force=True)
    assert (out / "thesis.txt").read_text() == "years of work"


def test_an_empty_folder_and_the_record_of_runs_are_no_conflict(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / ".run").mkdir(parents=True)
    (out / ".run" / "job.id").write_text("1")
    write_bundle(files(run="1"), out)
    (out / "notes.txt").write_text("mine")
    write_bundle(files(run="2"), out)
    assert (out / ".run" / "job.id").read_text() == "1"
    assert (out / "notes.txt").read_text() == "mine"


def test_a_file_of_the_user_in_the_place_of_a_new_file_is_a_conflict(tmp_path: Path) -> None:
    write_bundle(files(run="1"), tmp_path / "out")
    (tmp_path / "out" / "more.sh").write_text("mine")
    with pytest.raises(BundleConflict, match=r"more\.sh"):
        write_bundle(files(run="1", more="2"), tmp_path / "out")


def test_when_writing_fails_the_old_bundle_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    write_bundle(files(run="1", other="2"), out)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", "other.sh")

    monkeypatch.setattr(bundle, "put_files", fail)
    with pytest.raises(GenError, match="No space left on device"):
        write_bundle(files(run="new", other="new"), out)
    with pytest.raises(GenError, match="No space left on device"):
        write_bundle(files(run="new"), tmp_path / "fresh")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    assert {path.name: path.read_text() for path in out.iterdir() if path.suffix == ".sh"} == {
        "run.sh": "1",
        "other.sh": "2",
    }


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(GenError, match="is a file"):
        write_bundle(files(run="1"), tmp_path / "out")


def test_another_mode_is_mended(tmp_path: Path) -> None:
    write_bundle(files(run="1"), tmp_path / "out")
    (tmp_path / "out" / "run.sh").chmod(0o600)
    assert verbs(write_bundle(files(run="1"), tmp_path / "out")) == {"run.sh": "update"}
    assert (tmp_path / "out" / "run.sh").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["login/mine.txt", "login", ".hidden", "deep/er/mine.txt"])
def test_a_foreign_file_is_named_wherever_it_lies_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    mine = tmp_path / "out" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(BundleConflict, match=name.replace(".", r"\.")):
        write_bundle(files(run="1", login_x="2"), tmp_path / "out")
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == [mine]


@pytest.mark.parametrize("name", ["run.sh/mine.txt", "login"])
def test_what_force_cannot_overwrite_is_told_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    mine = tmp_path / "out" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(GenError, match=f"{name.split('/')[0]}: in the way, and --force overwrites files only"):
        write_bundle(files(also="1", run="2", login_x="3"), tmp_path / "out", force=True)
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == [mine]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_stands_in_the_place_of_a_folder_is_a_conflict(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    write_bundle(files(run="1", login_x="2"), out)
    shutil.rmtree(out / "login")
    (tmp_path / "elsewhere").mkdir()
    if kind == "file":
        (out / "login").write_text("mine")
    else:
        (out / "login").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BundleConflict, match=r"login/x\.sh"):
        write_bundle(files(run="new", login_x="3"), out)
    assert (out / "run.sh").read_text() == "1"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_in_the_place_of_a_file_is_a_conflict_and_never_written_through(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_bundle(files(run="1"), out)
    (tmp_path / "precious").write_text("1")
    (out / "run.sh").unlink()
    (out / "run.sh").symlink_to(tmp_path / "precious")
    with pytest.raises(BundleConflict, match=r"run\.sh"):
        write_bundle(files(run="new"), out)
    write_bundle(files(run="new"), out, force=True)
    assert (tmp_path / "precious").read_text() == "1"
    assert (out / "run.sh").read_text() == "new"


def test_a_manifest_that_names_files_outside_removes_none_of_them(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_bundle(files(run="1"), out)
    manifest = json.loads((out / "MANIFEST.json").read_text())
    victims = [tmp_path / "a", tmp_path / "b"]
    for victim, name in zip(victims, ("../a", str(tmp_path / "b")), strict=True):
        victim.write_text("v")
        manifest["files"].append({"path": name, "sha256": hashlib.sha256(b"v").hexdigest()})
    (out / "MANIFEST.json").write_text(json.dumps(manifest))
    write_bundle(files(run="new"), out)
    assert [victim.read_text() for victim in victims] == ["v", "v"]


def test_when_the_disk_is_full_in_the_middle_the_old_bundle_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write_bundle(files(run="1", other="2"), out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    write_bytes = Path.write_bytes

    def fail_at_the_last(path: Path, data: bytes) -> int:
        if path.name == "MANIFEST.json":
            raise OSError(28, "No space left on device", str(path))
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", fail_at_the_last)
    with pytest.raises(GenError, match="No space left on device"):
        write_bundle(files(run="new", other="new"), out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def kill_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process end, as by SIGKILL, after so many files were put in their places or removed."""
    done = 0

    def ending(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            nonlocal done
            if done == steps:
                raise KeyboardInterrupt
            done += 1
            return real(*arguments, **options)

        return step

    monkeypatch.setattr(Path, "replace", ending(Path.replace))
    monkeypatch.setattr(Path, "rename", ending(Path.rename))
    monkeypatch.setattr(Path, "unlink", ending(Path.unlink))
    # Nobody tidies up after a kill.
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)


@pytest.mark.parametrize("after", ["old", "new", "third"])
@pytest.mark.parametrize("steps", range(8))
def test_killed_at_any_point_the_next_run_writes_its_bundle_and_leaves_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int, after: str
) -> None:
    # GEN-10
    out = tmp_path / "out"
    specs = {
        "old": files(run="old", config="old", build="old", login_x="old"),
        "new": files(run="new", config="new", more="new"),
        "third": files(run="third", more="third", login_x="third"),
    }
    write_bundle(specs["old"], out)
    (out / "notes.txt").write_text("mine")
    with monkeypatch.context() as patched:
        kill_after(steps, patched)
        if steps < 6:
            with pytest.raises(KeyboardInterrupt):
                write_bundle(specs["new"], out)
        else:
            write_bundle(specs["new"], out)
    write_bundle(specs[after], out)
    there = {path.relative_to(out).as_posix(): path.read_text() for path in out.rglob("*") if path.is_file()}
    assert there == {"notes.txt": "mine", **{file.path: file.text for file in specs[after]}}
    assert [path for path in out.rglob("*") if path.is_dir() and not any(path.iterdir())] == []


def test_what_was_edited_after_a_kill_is_still_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    write_bundle(files(run="old", other="old"), out)
    with monkeypatch.context() as patched:
        kill_after(1, patched)
        with pytest.raises(KeyboardInterrupt):
            write_bundle(files(run="new", other="new"), out)
    (out / "run.sh").write_text("edited")
    with pytest.raises(BundleConflict, match=r"run\.sh"):
        write_bundle(files(run="new", other="new"), out)


def test_a_first_run_that_was_killed_leaves_no_bundle_and_the_next_one_tidies_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        kill_after(0, patched)
        with pytest.raises(KeyboardInterrupt):
            write_bundle(files(run="1"), tmp_path / "out[1]")
    assert not (tmp_path / "out[1]").exists()
    write_bundle(files(run="1"), tmp_path / "out[1]")
    assert [path.name for path in tmp_path.iterdir()] == ["out[1]"]


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(GenError, match="out: cannot be written: "):
        write_bundle(files(run="1"), tmp_path / "file" / "out")
