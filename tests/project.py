"""Makes the repository that the tests take to the cluster, and says what its working tree holds.

It is built as TensorRT-LLM is: scripts/build_wheel.py compiles what is below cpp/ and prints the progress.
"""

import hashlib
import json
import os
import subprocess
from pathlib import Path

PARTS = 60

BUILD_WHEEL = '''#!/usr/bin/env python3
"""Compile cpp/ with make, and print the progress as the real one does."""

import argparse
import glob
import os
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("-a", "--cuda_architectures", default="")
parser.add_argument("--nvtx", action="store_true")
options = parser.parse_args()
print(f"build_wheel: architectures {options.cuda_architectures}, nvtx {options.nvtx}", flush=True)
parts = sorted(glob.glob("cpp/src/*.c"))
os.makedirs("cpp/build", exist_ok=True)
for number, part in enumerate(parts, 1):
    target = "build/" + os.path.basename(part)[:-2] + ".o"
    print(f"[{number * 100 // len(parts):3d}%] Building CXX object {target}", flush=True)
    made = subprocess.run(["make", "-s", "-C", "cpp", target])
    if made.returncode:
        print(f"FAILED: {target}", flush=True)
        sys.exit(1)
print("[100%] Linking CXX executable build/engine", flush=True)
subprocess.run(["make", "-s", "-C", "cpp", "build/engine"], check=True)
print("Successfully built tensorrt_llm", flush=True)
'''

MAKEFILE = """OBJECTS := $(patsubst src/%.c,build/%.o,$(wildcard src/*.c))

build/%.o: src/%.c include/engine.h
\t$(CC) -Iinclude -c $< -o $@

build/engine: $(OBJECTS)
\t$(CC) $(OBJECTS) -o $@
"""

# Runs on the node: what is there, as this module's describe_tree tells it here.
FINGERPRINT = """import hashlib, json, os, stat, sys

found = {}
for folder, folders, files in os.walk("."):
    left_out = ("./.git", "./work_dirs", "./cpp/build")
    folders[:] = [f for f in folders if os.path.join(folder, f) not in left_out]
    for name in files + [f for f in folders if os.path.islink(os.path.join(folder, f))]:
        path = os.path.join(folder, name)
        what = os.lstat(path)
        if stat.S_ISLNK(what.st_mode):
            found[path[2:]] = ["link", os.readlink(path)]
        else:
            kind = "exec" if what.st_mode & 0o100 else "file"
            found[path[2:]] = [kind, hashlib.sha256(open(path, "rb").read()).hexdigest()]
json.dump(found, open(sys.argv[1], "w"))
"""


def git(folder: Path, *arguments: str) -> str:
    """Run git as a person with a name and without configuration; give what it prints."""
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_AUTHOR_NAME": "A Person", "GIT_AUTHOR_EMAIL": "person@example.org",
        "GIT_COMMITTER_NAME": "A Person", "GIT_COMMITTER_EMAIL": "person@example.org",
        "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
    }  # fmt: skip
    done = subprocess.run(["git", "-C", str(folder), *arguments], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def make_project(folder: Path) -> None:
    """A repository of a few hundred files, committed, on the branch main."""

    def write(name: str, text: str, mode: int = 0o644) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    write("scripts/build_wheel.py", BUILD_WHEEL, 0o755)
    write("cpp/Makefile", MAKEFILE)
    write("cpp/include/engine.h", f"#define PARTS {PARTS}\n")
    calls = "".join(f"int part_{number}(void); " for number in range(PARTS))
    total = " + ".join(f"part_{number}()" for number in range(PARTS))
    write(
        "cpp/src/main.c",
        f'#include <stdio.h>\n#include "engine.h"\n{calls}\n'
        f'int main(void) {{ printf("engine: %d of %d parts\\n", {total}, PARTS); return 0; }}\n',
    )
    for number in range(PARTS):
        write(f"cpp/src/part_{number:02d}.c", f"int part_{number}(void) {{ return 1; }}\n")
    for number in range(200):
        write(f"engine/layer_{number // 20}/module_{number:03d}.py", f"def forward(x):\n    return x + {number}\n")
    for number in range(60):
        write(f"docs/page_{number:02d}.md", f"# Page {number}\n")
    write("tools/fingerprint.py", FINGERPRINT)
    write("tools/run.sh", "#!/bin/sh\necho run\n", 0o644)
    write(".gitignore", "/cpp/build/\n*.log\n/work_dirs/\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=first")


def make_dirty(folder: Path) -> None:
    """Leave work uncommitted in every way there is."""
    modules = folder / "engine" / "layer_0"
    (modules / "module_000.py").write_text("staged = 1\n")
    git(folder, "add", "engine/layer_0/module_000.py")
    (modules / "module_001.py").write_text("unstaged = 1\n")
    (modules / "module_002.py").write_text("staged = 1\n")
    git(folder, "add", "engine/layer_0/module_002.py")
    (modules / "module_002.py").write_text("staged = 1\nand_edited_again = 1\n")
    (modules / "module_003.py").unlink()
    git(folder, "rm", "--quiet", "engine/layer_0/module_004.py")
    git(folder, "mv", "docs/page_00.md", "docs/renamed page.md")
    (folder / "docs" / "page_01.md").rename(folder / "docs" / "moved by hand.md")
    (folder / "tools" / "run.sh").chmod(0o755)
    (folder / "new.py").write_text("added = 1\n")
    git(folder, "add", "new.py")
    (folder / "intended.py").write_text("intended = 1\n")
    git(folder, "add", "--intent-to-add", "intended.py")
    for name in (
        "with space.txt",
        "quo'te\"s.txt",
        "new\nline.txt",
        "-rf",
        "é ü.txt",
        "back\\slash",
        "*",
        "$HOME",
        "#x",
        " lead",
        "sub dir/deep.txt",
    ):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"untracked {name}\n")
    (folder / "untracked.sh").write_text("#!/bin/sh\n")
    (folder / "untracked.sh").chmod(0o755)
    (folder / "dangling").symlink_to("nowhere/at all")
    (folder / "ignored.log").write_text("ignored\n")


def describe_tree(folder: Path) -> dict[str, list[str]]:
    """What the node has to see: every file that is tracked or untracked, and not ignored, as it is on the disk."""
    listed = git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    found = {}
    for name in filter(None, listed):
        path = folder / name
        if path.is_symlink():
            found[name] = ["link", str(path.readlink())]
        elif path.exists():
            kind = "exec" if path.stat().st_mode & 0o100 else "file"
            found[name] = [kind, hashlib.sha256(path.read_bytes()).hexdigest()]
    return found


def photograph(folder: Path) -> dict[str, str]:
    """Every byte of a repository: each file of the working tree and of .git, with its mode and time of change.

    Only the times in .git/objects are left out: git renews them when it meets an object that it has already.
    """
    taken = {}
    for path in sorted(folder.rglob("*")):
        what = path.lstat()
        name = str(path.relative_to(folder))
        content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        time = what.st_mtime_ns if path.is_file() and not name.startswith(".git/objects/") else ""
        taken[name] = f"{what.st_mode:o} {time} {hashlib.sha256(content).hexdigest()}"
    return taken


def read_fingerprint(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(path.read_text())
    return found
