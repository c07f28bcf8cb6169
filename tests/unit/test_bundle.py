"""Writing a bundle: one verb a file, and nothing lost that was there."""

import hashlib
import json
from pathlib import Path

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
