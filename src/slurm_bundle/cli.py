"""Turns a command line into calls of the other modules, and what they give into text or JSON; no logic of its own.

Each command imports what it needs when it is called: `gen --help` waits for no model of a spec, `gen validate` for no
template.
"""

import gc
import json
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slurm_bundle import __version__
from slurm_bundle.problems import GenError, Problem, ProblemsError, show_text

if TYPE_CHECKING:
    from slurm_bundle.bundle import Change
    from slurm_bundle.lint import Finding
    from slurm_bundle.plan import Plan
    from slurm_bundle.rules import Surroundings
    from slurm_bundle.spec import ReadSpec

app = typer.Typer(
    name="gen",
    help="Turns one job spec into a bundle of plain bash that takes your code to a Slurm cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

SpecPath = Annotated[Path, typer.Argument(metavar="SPEC", help="The job spec, a JSON file.", show_default=False)]
BundlePath = Annotated[Path, typer.Argument(metavar="OUT", help="The folder of a bundle.", show_default=False)]
CatalogPath = Annotated[
    Path | None,
    typer.Option(
        "--catalog",
        metavar="FILE",
        help="The cluster catalog. Default: $GEN_CATALOG, else ~/.config/gen/clusters.toml where that is there.",
    ),
]
SetValues = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Set a field of the spec; a value that is JSON is taken as such. May be repeated.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, for programs.")]


def main() -> None:
    """Run gen; an error that the user can mend is shown as it is, with its exit code."""
    # A look for garbage while modules are imported finds none, and there are many.
    gc.disable()
    try:
        app()
    except ProblemsError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except GenError as error:
        print(f"gen: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


@app.callback(invoke_without_command=True)
def show_version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(f"gen {__version__}")
        raise typer.Exit


@app.command()
def validate(
    spec: SpecPath, catalog: CatalogPath = None, set_values: SetValues = None, as_json: AsJson = False
) -> None:
    """Check a spec, and show every resolved value with its origin."""
    with_problems_as_json(
        lambda: show_plan(*plan_of(spec, catalog, set_values or []), as_json=as_json), as_json=as_json
    )


@app.command()
def bundle(
    spec: SpecPath,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="The folder to write the bundle to.")],
    catalog: CatalogPath = None,
    set_values: SetValues = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files in OUT that gen did not write or that were edited.")
    ] = False,
    ask: Annotated[
        bool, typer.Option("--ask", help="On a terminal, ask for each required field that is missing.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--lint/--no-lint", help="Then check it, as gen lint does; its exit code counts.")
    ] = False,
    try_first: Annotated[
        bool, typer.Option("--rehearse", help="Rehearse it first, and tell of that in its README; it counts, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the bundle of a spec."""
    from slurm_bundle.bundle import write_bundle
    from slurm_bundle.lint import lint_bundle
    from slurm_bundle.render import render_bundle
    from slurm_bundle.resolving import Missing
    from slurm_bundle.surroundings import require_files

    def make() -> None:
        given = list(set_values or [])
        while True:
            try:
                plan, read, here = plan_of(spec, catalog, given)
                break
            except ProblemsError as error:
                missing = [problem for problem in error.problems if isinstance(problem, Missing)]
                if not (ask and missing and sys.stdin.isatty()):
                    raise
                given += [f"{problem.field}={typer.prompt(str(problem), err=True)}" for problem in missing]
        require_files(read, here)
        rehearsed, section = rehearse_plan(plan) if try_first else (None, "")
        changes = write_bundle(render_bundle(plan, section), output, force=force)
        findings, absent = lint_bundle(output) if check else ([], [])
        if as_json:
            checked = findings_as_json(findings, absent) if check else {}
            tried = {"rehearsed": rehearsed} if rehearsed else {}
            print_json({**changes_as_json(plan, output, changes), **checked, **tried})
        else:
            show_changes(plan, output, changes)
            if check:
                show_findings(output, findings, absent)
            if rehearsed:
                print(f"{output}: rehearsed: exit code {rehearsed['exit_code']}, {rehearsed['status']}")
        raise typer.Exit(1 if faults(findings) or (rehearsed and not rehearsed["as_expected"]) else 0)

    with_problems_as_json(make, as_json=as_json)


@app.command()
def lint(out: BundlePath, as_json: AsJson = False) -> None:
    """Check the scripts of a bundle: shellcheck, bash -n, shfmt."""
    from slurm_bundle.bundle import require_bundle
    from slurm_bundle.lint import lint_bundle

    require_bundle(out)
    findings, absent = lint_bundle(out)
    if as_json:
        print_json(findings_as_json(findings, absent))
    else:
        show_findings(out, findings, absent)
    raise typer.Exit(1 if faults(findings) else 0)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    context: typer.Context,
    out: BundlePath,
    as_json: Annotated[bool, typer.Option("--json", help="Print events on stdout, a JSON object a line.")] = False,
) -> None:
    """Run a bundle on this machine. Further options go to its run_all.sh, and its exit code comes back."""
    from slurm_bundle.bundle import require_bundle
    from slurm_bundle.progress import show_progress
    from slurm_bundle.run import list_steps, read_report, run_bundle

    require_bundle(out)
    with show_progress(list_steps(out), as_json=as_json) as show:
        code = run_bundle(out, context.args, show)
    if as_json:
        print(json.dumps({"event": "report", "exit_code": code, "report": read_report(out)}, ensure_ascii=False))
    raise typer.Exit(code)


@app.command()
def rehearse(
    out: BundlePath,
    scenario: Annotated[
        str, typer.Option("--scenario", metavar="NAME", help="What goes wrong; --scenario list names them.")
    ] = "success",
    every: Annotated[bool, typer.Option("--all", help="Rehearse every scenario, and print a table.")] = False,
    transcript: Annotated[
        Path | None,
        typer.Option("--transcript", metavar="FILE", help="Write each command and each file to FILE, - for stdout."),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Rehearse in DIR, which is empty or new, and keep it.")
    ] = None,
    run_commands: Annotated[
        bool, typer.Option("--run-commands", help="Run the commands of the spec, too, on this machine.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print events on stdout, a JSON object a line.")] = False,
) -> None:
    """Run a bundle against a practice cluster on this machine: no Slurm, no ssh, no network.

    Every script runs for real, between stand-ins; the commands of the spec are played. The exit code is 0 when each
    scenario ended as it has to and nothing was lost, else 1.
    """
    from slurm_bundle import rehearsing
    from slurm_bundle import transcript as record
    from slurm_bundle.bundle import require_bundle
    from slurm_bundle.progress import show_progress
    from slurm_bundle.run import list_steps

    if scenario == "list":
        print(rehearsing.list_scenarios())
        return
    require_bundle(out)
    rehearsing.require_scenario(scenario)
    if every and (scenario != "success" or transcript):
        raise GenError("--all rehearses each scenario; give --scenario and --transcript without it")
    with rehearsing.place_for(keep) as folder:
        if every:
            results = []
            for rehearsed in rehearsing.rehearse_all(out, folder, run_commands=run_commands):
                results.append(rehearsed)
                told = record.as_json(rehearsed, with_calls=False)
                print(json.dumps(told, ensure_ascii=False) if as_json else record.write_row(rehearsed), flush=True)
        else:
            with show_progress(list_steps(out), as_json=as_json) as show:
                rehearsed = rehearsing.rehearse_one(out, folder, scenario, show, run_commands=run_commands)
            results = [rehearsed]
            if as_json:
                print(json.dumps(record.as_json(rehearsed), ensure_ascii=False))
            if transcript:
                write_text(transcript, record.write_transcript(rehearsed))
    if not as_json:
        print(record.write_end(out, results))
    if results[-1].interrupted:
        raise typer.Exit(130)
    raise typer.Exit(0 if all(rehearsed.as_expected for rehearsed in results) else 1)


@app.command()
def schema() -> None:
    """Print the JSON Schema of the job spec. An editor that is given it completes and checks specs."""
    from slurm_bundle.schema import spec_schema

    print_json(spec_schema())


def plan_of(path: Path, catalog: Path | None, given: Iterable[str]) -> "tuple[Plan, ReadSpec, Surroundings]":
    from slurm_bundle.catalog import find_catalog
    from slurm_bundle.plan import resolve_plan
    from slurm_bundle.spec import read_spec
    from slurm_bundle.surroundings import look_around

    read = read_spec(path, overrides=dict(map(read_assignment, given)))
    known = find_catalog(catalog)
    here = look_around(read)
    return resolve_plan(read, known, here), read, here


def rehearse_plan(plan: "Plan") -> tuple[dict[str, Any], str]:
    """Rehearse the bundle of a plan in a temporary folder; give how it went, and its section of the README."""
    from slurm_bundle import rehearsing
    from slurm_bundle import transcript as record
    from slurm_bundle.bundle import write_bundle
    from slurm_bundle.render import render_bundle

    with rehearsing.place_for(None) as folder:
        write_bundle(render_bundle(plan), folder / "bundle", force=False)
        rehearsed = rehearsing.rehearse_one(folder / "bundle", folder, "success", lambda event: None)
        return record.as_json(rehearsed, with_calls=False), record.write_short(rehearsed)


def read_assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise GenError(f"--set {text}: give FIELD=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def with_problems_as_json(make: Callable[[], None], *, as_json: bool) -> None:
    try:
        make()
    except GenError as error:
        if not as_json:
            raise
        problems = getattr(error, "problems", None) or [Problem("", str(error))]
        print_json(
            {
                "valid": False,
                "problems": [
                    {"place": p.place, "message": p.message, "field": getattr(p, "field", None)} for p in problems
                ],
            }
        )
        raise typer.Exit(error.exit_code) from error


def show_plan(plan: "Plan", read: "ReadSpec", here: "Surroundings", *, as_json: bool) -> None:
    from slurm_bundle.surroundings import missing_here

    remarks = (*plan.remarks, *missing_here(read, here))
    if as_json:
        values = [{"name": v.name, "value": v.value, "origin": v.origin} for v in plan.values]
        print_json(
            {"valid": True, "values": values, "remarks": [{"place": r.place, "message": r.message} for r in remarks]}
        )
        return
    resolved = [value for value in plan.values if value.value not in (None, (), "")]
    width = max(len(value.name) for value in resolved)
    for value in resolved:
        shown = value.value if isinstance(value.value, str) else json.dumps(value.value, ensure_ascii=False)
        line = show_text(shown.replace("\n", "\\n"))
        if isinstance(value.value, tuple) and width + len(line) > 78:  # a list that is too long has an item a line
            items = [show_text(json.dumps(item, ensure_ascii=False)) for item in value.value]
            line = "[" + f",\n{'':{width + 3}}".join(items) + "]"
        print(f"{value.name:{width}}  {line}")
        print(textwrap.indent(textwrap.fill(value.origin, 76 - width), " " * (width + 4)))
    show_remarks(remarks)
    print(f"{plan.spec_name}: valid")


def show_remarks(remarks: Iterable[Problem]) -> None:
    for remark in remarks:
        print(
            textwrap.fill(
                f"note: {remark}", 80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            ),
            file=sys.stderr,
        )


def show_changes(plan: "Plan", output: Path, changes: "tuple[Change, ...]") -> None:
    for change in changes:
        print(f"{change.verb:9}  {output / change.path}")
    show_remarks(plan.remarks)
    kept = len([change for change in changes if change.verb != "remove"])
    print(f"{output}: {kept} files; read {output / 'README.md'}, then: gen run {output}")


def changes_as_json(plan: "Plan", output: Path, changes: "tuple[Change, ...]") -> dict[str, Any]:
    return {
        "bundle": str(output),
        "bundle_id": plan["bundle_id"],
        "files": [{"path": c.path, "verb": c.verb} for c in changes],
    }


def faults(findings: "Iterable[Finding]") -> "list[Finding]":
    return [finding for finding in findings if not finding.note]


def show_findings(out: Path, findings: "list[Finding]", absent: Iterable[str]) -> None:
    for finding in findings:
        print(f"{finding}{'  (your own text: a note)' if finding.note else ''}")
    for tool in absent:
        print(f"gen: {tool} is not installed here, or cannot run; it did not look", file=sys.stderr)
    count = len(faults(findings))
    print(f"{out}: {count or 'no'} finding{'s' if count != 1 else ''}")


def findings_as_json(findings: "list[Finding]", absent: Iterable[str]) -> dict[str, Any]:
    return {"findings": [finding.as_json() for finding in findings], "not_installed": absent}


def write_text(path: Path, text: str) -> None:
    """Write a text where the user asked for it; - is stdout."""
    if str(path) == "-":
        print(text, end="")
        return
    try:
        path.write_text(text)
    except OSError as error:
        raise GenError(f"cannot write {path}: {error.strerror}") from error


def print_json(content: object) -> None:
    print(json.dumps(content, indent=2, ensure_ascii=False, default=str))
