import json
from pathlib import Path
from typing import Any

import pytest

from slurm_bundle.fields import Spec
from slurm_bundle.problems import SpecError
from slurm_bundle.schema import spec_schema
from slurm_bundle.spec import ReadSpec, read_spec

BASE: dict[str, Any] = {"ssh_host": "login", "account": "a", "partition": "p", "command": "true"}


def read(folder: Path, text: str | bytes | None = None, **fields: Any) -> ReadSpec:
    """Read a spec from exactly this text, or from the base spec with these fields."""
    path = folder / "job_spec.json"
    if text is None:
        text = json.dumps({**BASE, **fields}, indent=1)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_spec(path)


def refuse(folder: Path, text: str | bytes | None = None, **fields: Any) -> list[str]:
    """Give the messages of a spec that is refused."""
    with pytest.raises(SpecError) as refusal:
        read(folder, text, **fields)
    return [str(problem) for problem in refusal.value.problems]


def test_a_spec_of_a_program_reads_with_nothing_to_say(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        mfa_style=None,
        monitor_timeout_seconds=7200,
        required_devices=2,
        required_devices_per_node=2,
        mounts=["/lustre/models:/models:ro"],
        container_image="registry.example.org/engine/devel:26.05",
        docker_image="registry.example.org/engine/devel:26.05",
        slurm_params={"nodes": 1, "gres": "gpu:8", "mpi_plugin": "pmix_v5", "time_limit": "02:00:00"},
        slurm_env={
            "partitions": [{"name": "batch", "nodes": "64", "gres": "gpu:h200:8(S:0-1)", "time_limit": "infinite"}],
            "pmix": {"available": ["pmix", "pmix_v5"], "preferred": "pmix_v5"},
            "errors": [],
        },
    )
    assert found.warnings == ()
    assert found.spec.slurm_env is not None
    assert found.spec.slurm_env.partitions is not None
    assert found.spec.slurm_env.partitions[0].nodes == "64"


def test_null_and_absent_are_told_apart(tmp_path: Path) -> None:
    spec = read(tmp_path, gpus_per_node=None).spec
    assert spec.gpus_per_node is None
    assert "gpus_per_node" in spec.model_fields_set
    assert "node_count" not in spec.model_fields_set


def test_every_field_may_be_null_or_absent(tmp_path: Path) -> None:
    spec = read(tmp_path, json.dumps(dict.fromkeys(Spec.model_fields))).spec
    assert spec.model_fields_set == Spec.model_fields.keys()
    assert read(tmp_path, "{}").spec.model_fields_set == set()


def test_an_empty_text_is_a_field_that_is_not_given(tmp_path: Path) -> None:
    spec = read(tmp_path, job_name="", test_cmd="", bench_cmd="", default_user_root_dir="").spec
    assert spec.model_fields_set & {"job_name", "test_cmd", "bench_cmd"} == set()
    assert "default_user_root_dir" in spec.model_fields_set, "null or empty means remote_cwd"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"node_count": 0}, "node_count: 0 is not allowed; give 1 or more"),
        ({"node_count": "8"}, 'node_count: expected an integer, got the string "8"; write 8 without quotes'),
        ({"node_count": 3.0}, "node_count: expected an integer, got the number 3.0; write 3"),
        ({"node_count": True}, "node_count: expected an integer, got true"),
        ({"gpus_per_node": 0}, "gpus_per_node: 0 is not allowed; give 1 or more, or null"),
        ({"build_project": 1}, "build_project: expected true or false, got the number 1"),
        ({"build_project": "true"}, 'got the string "true"; write true without quotes'),
        ({"account": 7}, 'account: expected a string, got the number 7; write "7" in quotes'),
        ({"account": ["a"]}, "account: expected a string, got the array"),
        ({"recipe": "mpl"}, 'recipe: "mpl" is not allowed; give one of single, mpi, distributed, launcher, batch'),
        ({"slurm_params": []}, "slurm_params: expected an object, got the array []"),
        ({"slurm_env": {"partitions": [{"name": 1}]}}, "slurm_env.partitions[0].name: expected a string"),
        ({"mounts": ["/a:/a", None]}, "mounts[1]: expected a string, got null"),
        ({"packages": "numpy"}, 'packages: expected an array, got the string "numpy"'),
    ],
)
def test_a_wrong_type_is_told_with_the_value_and_how_to_write_it(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    assert any(message in told for told in refuse(tmp_path, container_image="a:1", **fields))


@pytest.mark.parametrize(
    ("fields", "near"),
    [
        ({"node_cout": 1}, "node_cout: unknown field; did you mean 'node_count'?"),
        ({"node-count": 1}, "node-count: unknown field; did you mean 'node_count'?"),
        ({"slurm_params": {"partiton": "x"}}, "slurm_params.partiton: unknown field; did you mean 'partition'?"),
        (
            {"slurm_env": {"partitions": [{"nam": "x"}]}},
            "slurm_env.partitions[0].nam: unknown field; did you mean 'name'?",
        ),
        ({"mpi_plugin": "pmix"}, "mpi_plugin: unknown field; did you mean 'slurm_params.mpi_plugin'?"),
        ({"zzz": 1}, "zzz: unknown field; take it out"),
    ],
)
def test_an_unknown_field_names_the_nearest_known_one(tmp_path: Path, fields: dict[str, Any], near: str) -> None:
    (told,) = refuse(tmp_path, **fields)
    assert near in told


def test_all_problems_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = '{\n "node_count": 0,\n "job_name": "a/b",\n "slurm_params": {\n  "nodes": -1\n },\n "nope": 1\n}'
    told = refuse(tmp_path, text)
    assert [message.split(": ")[0:2] for message in told] == [
        ["job_spec.json:2", "node_count"],
        ["job_spec.json:3", "job_name"],
        ["job_spec.json:5", "slurm_params.nodes"],
        ["job_spec.json:7", "nope"],
    ]


def test_wrong_fields_and_fields_that_clash_are_told_together(tmp_path: Path) -> None:
    told = refuse(tmp_path, node_count=0, test_cmd="pytest")
    assert len(told) == 2
    assert "command and test_cmd are given" in told[1] + told[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("[]", "job_spec.json:1: expected an object at the top, got the array []"),
        ('{"a": 1,}', "job_spec.json:1:9: a comma before the closing bracket; take the comma out"),
        ('{"a": [1,]}', "a comma before the closing bracket"),
        ('{"a": 1\n "b": 2}', "job_spec.json:2:2: a comma is missing before this"),
        ('{"a": True}', "job_spec.json:1:7: True is no JSON; write true"),
        ('{"a": None}', "None is no JSON; write null"),
        ("{'a': 1}", "JSON has no single quotes"),
        ('{\n // x\n "a": 1}', "job_spec.json:2:2: JSON has no comments"),
        ('{"a" 1}', "a colon is missing"),
        ('{"a": "x\ny"}', "a line break or tab inside a string"),
        ('{"a": "\\d"}', "write \\\\ for a backslash"),
        ('{"a": "x', "the string is not closed"),
        ('{"a": 1', "close"),
        ("{} {}", "text after the end of the object"),
        ("{" * 100_000, "job_spec.json"),
        ('{"a":' * 100_000, "nested too deeply"),
        (b'{"account": "\xe9"}', "job_spec.json:1: byte 0xe9 is no UTF-8; save the file as UTF-8"),
        ("{}".encode("utf-16"), "is no UTF-8"),
    ],
)
def test_what_is_no_json_is_told_with_line_column_and_way_out(tmp_path: Path, text: str | bytes, message: str) -> None:
    (told,) = refuse(tmp_path, text)
    assert message in told


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    assert read(tmp_path, b'\xef\xbb\xbf{"account": "a"}').spec.account == "a"


def test_a_missing_file_and_a_folder_are_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"no_spec.json: there is no file"):
        read_spec(tmp_path / "no_spec.json")
    with pytest.raises(SpecError, match="is a folder"):
        read_spec(tmp_path)


def test_a_key_that_is_given_twice_names_both_lines(tmp_path: Path) -> None:
    told = refuse(tmp_path, '{\n "account": "a",\n "env": {"A": "1",\n  "A": "2"},\n "account": "b"\n}')
    assert told == [
        "job_spec.json:4: env.A: given twice, in line 3 and in line 4; keep one",
        "job_spec.json:5: account: given twice, in line 2 and in line 5; keep one",
    ]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 6000])
def test_numbers_that_json_does_not_have_are_refused_once(tmp_path: Path, number: str) -> None:
    (told,) = refuse(tmp_path, f'{{\n "node_count": {number}}}')
    assert told.startswith("job_spec.json:2: node_count: NaN, Infinity and numbers beyond all measure")


@pytest.mark.parametrize("field", ["command", "model_name", "job_name", "build_command"])
@pytest.mark.parametrize(("escape", "said"), [("\\u0000", "NUL"), ("\\ud800", "surrogate")])
def test_what_no_shell_or_file_can_carry_is_refused_anywhere(
    tmp_path: Path, field: str, escape: str, said: str
) -> None:
    (told,) = refuse(tmp_path, f'{{"{field}": "a{escape}"}}')
    assert field in told
    assert said in told


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ('{"a\\ud800": 1}', "a\\ud800"),
        ('{"env": {"\\ud800": "x"}}', "env.\\ud800"),
        ('{"slurm_env": {"\\ud800": 1}}', "slurm_env.\\ud800"),
        ('{"slurm_env": {"mounts": ["\\ud800"]}}', "slurm_env.mounts[0]"),
        ('{"mounts": "a\\ud800"}', "mounts"),
    ],
)
def test_half_a_character_in_a_key_or_in_an_array_is_a_problem_and_no_crash(
    tmp_path: Path, spec: str, place: str
) -> None:
    told = refuse(tmp_path, spec)
    assert told[0].replace(".json:1:", ".json:").startswith(f"job_spec.json: {place}: ")
    assert "has half of a surrogate pair" in told[0]


@pytest.mark.parametrize(
    "field", ["account", "partition", "job_name", "qos", "reservation", "constraint", "network", "comment"]
)
@pytest.mark.parametrize(
    "value",
    ["x\ntouch PWNED\n#", 'a"b', "a'b", "a\\b", "a`b`", "$USER", "main; rm -rf x", "a#b", "-x", " a", "a\u2028b"],
)
def test_text_for_a_directive_cannot_be_anything_more(tmp_path: Path, field: str, value: str) -> None:
    (told,) = refuse(tmp_path, **{field: value})
    assert f": {field}: " in told
    assert "; " in told, "the way out comes after a semicolon"


@pytest.mark.parametrize(
    ("field", "value"),
    [("job_name", "Big simulation"), ("job_name", "50%run"), ("partition", "a,b"), ("constraint", "[r1|r2]&gpu*2")],
)
def test_text_that_slurm_takes_is_kept_as_it_is(tmp_path: Path, field: str, value: str) -> None:
    assert getattr(read(tmp_path, **{field: value}).spec, field) == value


def test_a_job_name_with_a_slash_is_refused_with_the_reason(tmp_path: Path) -> None:
    (told,) = refuse(tmp_path, job_name="team/exp1")
    assert "would become a folder in log names with %x; write 'team_exp1'" in told


@pytest.mark.parametrize(
    ("value", "said"),
    [("a.out", "no %j"), ("logs/%j.out", "'/'"), ("%q_%j", "'%q'"), ("%j_%", "'%'"), ("$x_%j", "'$'")],
)
def test_a_log_name_is_a_file_name_with_the_job_id(tmp_path: Path, value: str, said: str) -> None:
    (told,) = refuse(tmp_path, log_file_pattern=value)
    assert said in told


@pytest.mark.parametrize("value", ["%j.out", "%x_%j.out", "100%%_%j_%N.log"])
def test_log_names_of_slurms_forms_are_taken(tmp_path: Path, value: str) -> None:
    assert read(tmp_path, log_file_pattern=value).spec.log_file_pattern == value


@pytest.mark.parametrize(
    "value",
    [
        "-oProxyCommand=touch PWNED",
        "a b",
        "a;b",
        "",
        "a\nb",
        "$(id)",
        "a|b",
        "host:22",
        "ssh://a",
        "@a",
        "a@",
        "u@-oX=y",
    ],
)
def test_an_ssh_host_is_one_plain_destination(tmp_path: Path, value: str) -> None:
    (told,) = refuse(tmp_path, ssh_host=value)
    assert ": ssh_host: " in told


def test_a_port_in_the_ssh_host_is_sent_to_ssh_options(tmp_path: Path) -> None:
    (told,) = refuse(tmp_path, ssh_host="me@login:2222")
    assert 'write \'me@login\' and ssh_options ["-p", "2222"]' in told


def test_two_users_of_one_login_are_a_problem(tmp_path: Path) -> None:
    (told,) = refuse(tmp_path, ssh_host="me@login", slurm_user="you")
    assert "logs in as 'me', slurm_user is 'you'" in told
    assert read(tmp_path, ssh_host="me@login", slurm_user="me").spec.slurm_user == "me"


@pytest.mark.parametrize(
    "words",
    [
        ["-p", "2222"],
        ["-p2222"],
        ["-i", "~/.ssh/id"],
        ["-J", "me@hop:22,hop2"],
        ["-o", "ServerAliveInterval=30"],
        ["-F", "/etc/a-b_c.conf"],
        ["-i", "it's ${HOME}/a b"],
    ],
)
def test_plain_ssh_options_are_taken(tmp_path: Path, words: list[str]) -> None:
    assert read(tmp_path, ssh_options=words).spec.ssh_options == tuple(words)


@pytest.mark.parametrize(
    "words",
    [
        ["-v"], ["host"], ["-p"], ["-p", "x"], ["-o", "ControlPath=/x"], ["-o", "ProxyCommand=id"],
        ["-oLocalCommand=id"], ["-J", "-oX=y"], ["-o", "X"], "-p 2222", [22],
        ["-F", "c$(id)", "-J", "hop"], ["-F", "~/c"], ["-F", "a b"], ["-i", "$HOME/id"], ["-o", "PKCS11Provider=/x.so"],
    ],
)  # fmt: skip
def test_ssh_options_that_undo_the_bundle_or_start_programs_are_refused(tmp_path: Path, words: Any) -> None:
    (told,) = refuse(tmp_path, ssh_options=words)
    assert ": ssh_options: " in told


@pytest.mark.parametrize(
    "option", ["--output=x", "--wrap=id", "--export=ALL", "--acc=x", "--job=x", "--nodes=2", "--array=1-3", "-t1",
               "--requeue", "--no-requeue", "--open-mode=append",
               "nice", "--nice 5", "--nice=", "--comment=a#b", "--container-image=x", "--dependency=afterok:1"],
)  # fmt: skip
def test_sbatch_options_that_gen_or_a_field_sets_are_refused(tmp_path: Path, option: str) -> None:
    (told,) = refuse(tmp_path, sbatch_options=["--nice=100", option])
    assert ": sbatch_options[1]: " in told


@pytest.mark.parametrize(
    "option", ["--nice=100", "--exclude=n[1-3]", "--no-kill", "--gpus=8", "--mem-per-cpu=2G", "--hint=nomultithread"]
)
def test_other_sbatch_options_are_taken(tmp_path: Path, option: str) -> None:
    assert read(tmp_path, sbatch_options=[option]).spec.sbatch_options == (option,)


def test_an_sbatch_option_with_a_field_is_sent_there(tmp_path: Path) -> None:
    (told,) = refuse(tmp_path, sbatch_options=["--qos=high"])
    assert "give qos in the spec" in told


def test_two_kinds_of_memory_exclude_each_other(tmp_path: Path) -> None:
    (told,) = refuse(tmp_path, mem="64G", sbatch_options=["--mem-per-cpu=2G"])
    assert "exclude each other" in told


@pytest.mark.parametrize("value", ["$HOME/runs", "runs", "./runs", "~you/runs", "/a/../b", "/a\nb", "/a/.."])
@pytest.mark.parametrize("field", ["remote_cwd", "default_user_root_dir", "remote_repo_path", "remote_work_dir"])
def test_a_path_on_the_cluster_is_absolute_or_below_home(tmp_path: Path, field: str, value: str) -> None:
    (told,) = refuse(tmp_path, **{field: value})
    assert f": {field}: " in told


@pytest.mark.parametrize(
    "value", ["", ".", "/", "./", "/cpp", "../cpp", "cpp/..", "~", ".git", "*", ":/", "-r", "cpp/\n"]
)
def test_a_refresh_path_lies_below_the_repository(tmp_path: Path, value: str) -> None:
    (told,) = refuse(tmp_path, refresh_paths=["cpp/", value])
    assert ": refresh_paths[1]: " in told


@pytest.mark.parametrize(
    "field_and_value",
    [
        {"env": {"A": "x y", "B": "it's", "C": "a\nb", "D": "$HOME", "E": "~/x", "F": "a,b", "G": "", "H": "100%"}},
        {"custom_env": ["A=x y", "B=it's", "C=a\nb", "D=$HOME", "E=~/x", "F=a,b", "G=", "H=100%"]},
        {"custom_env": "A='x y' B=\"it's\" C='a\nb' D='$HOME' E='~/x' F=a,b G= H=100%"},
    ],
)
def test_variables_are_read_from_every_form_byte_for_byte(tmp_path: Path, field_and_value: dict[str, Any]) -> None:
    spec = read(tmp_path, **field_and_value).spec
    assert (spec.env or spec.custom_env) == (
        ("A", "x y"), ("B", "it's"), ("C", "a\nb"), ("D", "$HOME"), ("E", "~/x"), ("F", "a,b"), ("G", ""), ("H", "100%")
    )  # fmt: skip


@pytest.mark.parametrize("name", ["1BAD", "A-B", "PATH", "SLURM_JOB_ID", "", "A B"])
def test_a_name_that_no_variable_may_have_is_refused(tmp_path: Path, name: str) -> None:
    assert f": env.{name}: " in refuse(tmp_path, env={name: "1"})[0]
    assert "pass_env[0]" in refuse(tmp_path, pass_env=[name])[0]


@pytest.mark.parametrize("value", [1, True, None, ["a"]])
def test_a_variable_is_a_string(tmp_path: Path, value: Any) -> None:
    (told,) = refuse(tmp_path, env={"A": value})
    assert "env.A: expected a string" in told


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "hf_SECRET123"),
        ("WANDB_API_KEY", "k"),
        ("aws_secret_access_key", "q1w2"),
        ("DB_PASSWORD", "q1w2"),
        ("X", "hf_SECRET123"),
        ("X", "ghp_0123456789abcdef"),
        ("X", "github_pat_0123456789"),
        ("X", "glpat-0123456789"),
        ("X", "sk-0123456789abc"),
        ("X", "xoxb-0123456789"),
        ("X", "AKIA0123456789ABCDEF"),
    ],
)
@pytest.mark.req("B19")
def test_a_secret_is_refused_and_never_shown(tmp_path: Path, name: str, value: str) -> None:
    for fields in ({"env": {name: value}}, {"custom_env": f"{name}={value}"}, {"custom_env": [f"{name}={value}"]}):
        (told,) = refuse(tmp_path, **fields)
        assert "pass_env" in told
        assert f'"{value}"' not in told
        assert "SECRET123" not in told
        assert "0123456789" not in told


@pytest.mark.parametrize(
    ("name", "value"),
    [("TOKENIZERS_PARALLELISM", "false"), ("MAX_TOKENS", "128"), ("KEYBOARD", "us"), ("HF_TOKEN", "")],
)
def test_a_name_that_only_looks_like_a_secrets_is_taken(tmp_path: Path, name: str, value: str) -> None:
    assert read(tmp_path, env={name: value}).spec.env == ((name, value),)


@pytest.mark.req("B19")
def test_a_token_inside_a_command_is_refused_and_not_shown(tmp_path: Path) -> None:
    (told,) = refuse(tmp_path, command="HF_TOKEN=hf_abcdefghijklmnopqrstuvwx python train.py")
    assert ": command: " in told
    assert "abcdefgh" not in told


@pytest.mark.parametrize(
    "url", ["https://me:pw123@git.example.org/x.git", "https://0123456789abcdef0123456789@git.example.org/x"]
)
def test_a_login_in_the_address_of_the_repository_is_refused_and_not_shown(tmp_path: Path, url: str) -> None:
    (told,) = refuse(tmp_path, repo_url=url)
    assert "repo_url: a login stands in the address (not shown)" in told
    assert "pw123" not in told
    assert "0123456789" not in told


@pytest.mark.parametrize(
    "url", ["git@git.example.org:me/x.git", "https://git.example.org/x.git", "ssh://git@h:22/x", "/srv/x.git"]
)
def test_a_plain_address_of_a_repository_is_taken(tmp_path: Path, url: str) -> None:
    assert read(tmp_path, repo_url=url).spec.repo_url == url


@pytest.mark.req("B19")
def test_a_password_is_dropped_with_a_warning_and_kept_nowhere(tmp_path: Path) -> None:
    found = read(tmp_path, slurm_password="pw123", slurm_env={"slurm_password": "pw123"})
    assert [problem.place.split(": ")[1] for problem in found.warnings] == [
        "slurm_password",
        "slurm_env.slurm_password",
    ]
    assert "pw123" not in repr(found)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"slurm_cluster": "a"}, {"cluster_name": "b"}),
        ({"container_image": "a:1"}, {"docker_image": "b:1"}),
        ({"mounts": ["/a:/a"]}, {"container_mounts": "/b:/b"}),
        ({"monitor_timeout_seconds": 60}, {"monitor_timeout": "1h"}),
        ({"work_dir": "/a"}, {"local_work_dir": "/b"}),
        ({"required_devices_per_node": 1}, {"required_devices": 2}),
        ({"env": {"A": "1"}}, {"custom_env": "A=2"}),
    ],
)
def test_two_names_of_one_thing_with_different_values_are_a_problem(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any]
) -> None:
    told = "\n".join(refuse(tmp_path, **{"container_image": "a:1", **first, **second}))
    assert next(iter(first)) in told
    assert next(iter(second)) in told


@pytest.mark.parametrize(
    "fields",
    [
        {"mounts": ["/a:/a", "/b:/b"], "container_mounts": "/a:/a, /b:/b", "container_image": "a:1"},
        {"monitor_timeout_seconds": 3600, "monitor_timeout": "1h"},
        {"env": {"A": "1", "B": "2"}, "custom_env": "A=1 B=2"},
    ],
)
def test_two_names_of_one_thing_with_equal_values_are_fine(tmp_path: Path, fields: dict[str, Any]) -> None:
    assert read(tmp_path, **fields).warnings == ()


def test_at_most_one_command_is_given(tmp_path: Path) -> None:
    (told,) = refuse(tmp_path, test_cmd="a", eval_cmd="b")
    assert "command and test_cmd and eval_cmd are given; keep the one" in told


@pytest.mark.parametrize("image", [{}, {"container_image": None}, {"container_image": ""}])
def test_mounts_without_an_image_are_a_problem(tmp_path: Path, image: dict[str, Any]) -> None:
    (told,) = refuse(tmp_path, mounts=["/a:/a"], **image)
    assert ": mounts: mounts needs container_image" in told


def test_a_wrong_image_is_not_told_as_a_missing_one(tmp_path: Path) -> None:
    (told,) = refuse(tmp_path, mounts=["/a:/a"], container_image="Org/Img")
    assert ": container_image: " in told


def test_each_wrong_mount_is_named_with_its_index_and_line(tmp_path: Path) -> None:
    text = '{\n"container_image": "a:1",\n"mounts": [\n"/a:/a",\n"b:/b",\n"/c:c"]}'
    told = refuse(tmp_path, text)
    assert [message[: message.index("]") + 1] for message in told] == [
        "job_spec.json:5: mounts[1]",
        "job_spec.json:6: mounts[2]",
    ]


@pytest.mark.parametrize("value", ["passed,done", ["passed", "done"], "passed, done"])
def test_patterns_are_an_array_or_a_comma_list(tmp_path: Path, value: Any) -> None:
    assert read(tmp_path, success_patterns=value).spec.success_patterns == ("passed", "done")


@pytest.mark.parametrize("value", ["a,,b", ["a", ""], ["a\nb"]])
def test_a_pattern_that_would_match_everything_is_refused(tmp_path: Path, value: Any) -> None:
    assert "failure_patterns[" in refuse(tmp_path, failure_patterns=value)[0]


@pytest.mark.parametrize("value", ["", "1 day", "1:2:3:4", -5, "-5", True, 1.5, [2], 10**12])
def test_a_wrong_time_limit_is_refused(tmp_path: Path, value: Any) -> None:
    # TIM-02
    (told,) = refuse(tmp_path, time_limit=value)
    assert ": time_limit: " in told


@pytest.mark.parametrize(
    ("value", "way_out"),
    [
        (3600, "for seconds write 3600s"),
        (1.5, "give 1h"),
        (True, "got true"),
        ("1:2:3:4", "give 1h"),
        ("1 day", "give 1h"),
    ],
)
def test_a_wrong_duration_is_told_with_the_way_out(tmp_path: Path, value: Any, way_out: str) -> None:
    # TIM-02
    (told,) = refuse(tmp_path, monitor_timeout=value)
    assert ": monitor_timeout: " in told
    assert way_out in told


def test_a_time_limit_that_people_misread_gets_a_warning_with_its_line(tmp_path: Path) -> None:
    (warning,) = read(tmp_path, '{\n"time_limit": "24:00"}').warnings
    assert str(warning) == "job_spec.json:2: time_limit: 24:00 is 24 minutes to Slurm; for 24 hours write 24:00:00"
    assert read(tmp_path, time_limit=120).spec.time_limit == "120"


@pytest.mark.parametrize("value", ["numpy", "numpy==1.26.4", "torch[dev]>=2.1,<3", "a-b_c.d"])
def test_pip_requirements_are_taken(tmp_path: Path, value: str) -> None:
    assert read(tmp_path, packages=[value]).spec.packages == (value,)


@pytest.mark.parametrize("value", ["-r req.txt", "numpy ==1", "git+https://x/y", "a;b", "", "../x"])
def test_what_is_no_exact_pip_requirement_is_refused(tmp_path: Path, value: str) -> None:
    assert "packages[0]" in refuse(tmp_path, packages=[value])[0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mem", "64GB"),
        ("mem", "x"),
        ("gpu_clocks", "1980"),
        ("container_name", "a b"),
        ("script_name", "a/b"),
        ("remote_init", "a\nb"),
        ("slurm_user", "a b"),
        ("sync", {"mode": "x"}),
    ],
)
def test_other_fields_are_checked_for_where_they_land(tmp_path: Path, field: str, value: Any) -> None:
    assert f": {field}" in refuse(tmp_path, **{field: value})[0]


def test_a_very_long_value_is_not_shown_in_full(tmp_path: Path) -> None:
    (told,) = refuse(tmp_path, remote_cwd="x/" * 1_500)
    assert len(told) < 500
    assert told.endswith("give an absolute path or ~/... as the cluster sees it")


def test_an_override_replaces_a_field_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{\n"node_count": 0\n}')
    assert read_spec(tmp_path / "s.json", overrides={"node_count": 2}).spec.node_count == 2
    with pytest.raises(SpecError, match=r"^s.json: node_count: 0 is not"):
        read_spec(tmp_path / "s.json", overrides={"node_count": 0})


def test_a_line_is_known_for_every_part_of_the_file(tmp_path: Path) -> None:
    found = read(tmp_path, '{\n"slurm_params": {\n"nodes": 1},\n"packages": [\n"a"]}')
    assert found.lines == {"slurm_params": 2, "slurm_params.nodes": 3, "packages": 4, "packages[0]": 5}
    assert found.place("ssh_host") == "job_spec.json: ssh_host"


def test_the_place_of_the_schema_is_for_editors_only(tmp_path: Path) -> None:
    assert read(tmp_path, **{"$schema": "./schema.json"}).warnings == ()


@pytest.mark.req("B15")
def test_the_schema_describes_every_field_and_allows_no_other() -> None:
    schema = spec_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "$id" not in schema
    assert schema["additionalProperties"] is False
    objects = [schema, *schema["$defs"].values()]
    assert [
        name for part in objects for name, field in part["properties"].items() if not field.get("description")
    ] == []
    assert {"$schema", "slurm_password", "node_count"} <= schema["properties"].keys()
    json.dumps(schema)


def test_the_folder_of_a_spec_is_known_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert read_spec(Path("s.json")).folder == tmp_path


def test_the_name_of_a_spec_stays_on_its_line_in_whatever_is_said(tmp_path: Path) -> None:
    odd = tmp_path / "a\n\x1b[2Jb.json"
    with pytest.raises(SpecError, match=r"^a\\u000a\\u001b\[2Jb\.json: there is no file /"):
        read_spec(odd)
    odd.write_text('{"node_count": 0}')
    with pytest.raises(SpecError, match=r"^a\\u000a\\u001b\[2Jb\.json:1: node_count: 0 is not allowed"):
        read_spec(odd)
