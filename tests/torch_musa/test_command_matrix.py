# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every command runs with the core alone, with the extra `all`, and with everything installed.

Commands are found in parsers, entry points and folders, so that a new one is tested too.
"""

import argparse
import json
import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

import dev
from musa_runtime import command_line, sdk
from tests.harness.installations import FAMILY, Installation
from torch_musa import __main__ as umbrella
from torch_musa import extras

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
CORE = {"torch-musa", "musa-runtime", "musa-emulator"}
INSTALLED = {
    "core": CORE,
    "all": CORE
    | {"musa-emulator-mudnn", "musa-emulator-mccl", "musa-emulator-math", *extras.installs()["all"]},
    "everything": set(FAMILY),
}
# Modules that are no commands of a user.
INTERNAL = {
    "musa_runtime.sdk": "CMake runs it by its path",
    "musa_runtime.mcc": "CMake runs it by its path",
    "torch_musa.musa._memory_viz": "runs the program of torch",
    "torch_musa.report.first_program": "the report runs it",
}
# Words after `python -m torch_musa`, the status, and a part of the output.
CASES = [
    ("", 2, "check the installation step by step"),
    ("--help", 0, "replay"),
    ("--version", 0, f"torch-musa {metadata.version('torch-musa')}"),
    ("nosuch", 2, "invalid choice"),
    ("docter", 2, "Did you mean doctor?"),
    ("packs --jsn", 2, "Did you mean --json?"),
    *((command, 2, "required: ") for command in ("run", "compare", "replay")),
    ("packs", 0, ""),
    ("packs --json", 0, "["),
    ("ops aten::mm", 0, "aten::mm"),
    ("ops nosuch_at_all_xyz", 1, "no operator matches 'nosuch_at_all_xyz'"),
    ("ops layer_nrom", 1, "Did you mean aten::layer_norm"),
    ("ops nosuch --json", 1, "[]"),
    ("env", 0, "torch"),
    ("report --seconds 0.01", 0, "wrote torch_musa_report.txt"),
    ("top", 0, "torch_musa top"),
    ("top --json", 0, "{"),
    ("top --interval 0", 2, "usage: python -m torch_musa"),
    ("doctor", 0, "every check passed"),
    ("tune --dry-run --operators nosuch", 1, "Fix: python -m torch_musa ops"),
    ("run script.py an-argument", 0, "ran ['script.py', 'an-argument']"),
    ("run -m script an-argument", 0, "an-argument"),
    ("run nosuch.py", 1, "no such file"),
    ("compare script.py an-argument", 0, "operators compared"),
    ("compare nosuch.py", 2, "Fix:"),
    ("replay nosuch.pt", 1, "Fix:"),
]
# Runs commands one after the other: modules, or scripts of entry points.
PROGRAM = """
import contextlib, io, json, runpy, sys, warnings
from importlib import metadata
found = []
for target, words in json.loads({cases!r}):
    told, status = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), 0
    sys.argv = [target, *words.split()]
    path = list(sys.path)
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        try:
            if scripts := metadata.entry_points(group="console_scripts", name=target):
                (script,) = scripts
                sys.exit(script.load()())
            for name in (target, target + ".__main__"):
                sys.modules.pop(name, None) if "." in name else None
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
            if isinstance(end.code, str):
                print(end.code)
        except BaseException as error:
            status = repr(error)
    sys.path[:] = path
    told.flush()
    found.append([status, told.buffer.getvalue().decode()])
print(json.dumps(found))
"""


MODULES = """
import json, runpy, sys, torch, warnings
warnings.simplefilter("ignore")
found = {{}}
for name in json.loads({names!r}):
    sys.argv, found[name] = [name, "--help"], ""
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        found[name] = str(end.code or "")
    except BaseException as error:
        found[name] = repr(error)
print(json.dumps(found))
"""


def commands_of(parser):
    """The parsers of a parser's commands by name."""
    (action,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    return action.choices


def modules_that_run(names):
    """The modules of distributions that `python -m` runs."""
    found = []
    for name in names:
        source = ROOT / "packages" / name / "src"
        for file in source.rglob("*.py"):
            if '__name__ == "__main__"' in file.read_text():
                found.append(
                    ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__main__")
                )
    return sorted(set(found) - set(INTERNAL))


def scripts_of(names):
    points = metadata.entry_points(group="console_scripts")
    return sorted(point.name for point in points if point.dist.name in names)


def undescribed(text):
    """Options and arguments of an output of --help that have no description."""
    # argparse puts a description that does not fit beside an option in the next line, indented by 24 blanks.
    rows = re.findall(r"^  (\S.*)\n(?! {20})", text.partition("\n\n")[2], re.MULTILINE)
    return [row for row in rows if row.startswith("-") and not re.search(r"\S {2,}\S", row)]


def standard_cases(target, word=""):
    """Words for a program or its command: help, version, a wrong option and a misspelt one."""
    prefix = f"{word} " if word else ""
    return [
        (target, f"{prefix}--help", 0, "usage: "),
        (target, f"{prefix}--version", 0, "0."),
        (target, f"{prefix}--nosuch-zzz", 2, "usage: "),
        (target, f"{prefix}--versoin", 2, "Did you mean --version?"),
    ]


def problems(cases, results):
    """The cases that ended otherwise than required, with the end of their output."""
    wrong = []
    for (target, words, status, part), (have, text) in zip(cases, results, strict=True):
        bad = have != status or part not in text or "Traceback" in text
        if words.endswith("--help"):
            described = re.search(r"^[A-Z][^\n]*", text.partition("\n\n")[2])
            bad = bad or not described or bool(undescribed(text))
        if bad:
            wrong.append((target, words, have, text[-600:]))
    return wrong


def run_cases(cases, installation, server):
    asked = json.dumps([(target, words) for target, words, *_ in cases])
    code = installation.code(installation.environment, PROGRAM.format(cases=asked))
    done = server.run(code, installation.environment, cwd=str(installation.prefix))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", INSTALLED)
def test_every_command_runs(name, shared_packages, package_server, tmp_path):
    without = tuple(set(FAMILY) - INSTALLED[name])
    installation = Installation(tmp_path, shared_packages, tmp_path, without)
    (installation.prefix / "script.py").write_text(
        "import sys, torch\nprint('ran', sys.argv, (torch.ones(2, device='musa') + 1).tolist())\n"
    )
    cases = [("torch_musa", *case) for case in CASES]
    for command in commands_of(umbrella.parser()):
        cases += standard_cases("torch_musa", command)
    programs = [*modules_that_run(INSTALLED[name]), *scripts_of(INSTALLED[name])]
    assert {"torch_musa", "musa_runtime.config"} <= set(programs)
    assert ("musa-converter" in programs) == (name == "everything")
    for program in programs:
        cases += standard_cases(program)
    # A program that needs arguments prints its overview.
    cases += [(program, "", 2, "show this help message") for program in programs]
    assert not problems(cases, run_cases(cases, installation, package_server))


def test_a_command_without_a_description_or_with_a_wrong_status_is_noticed():
    parser = argparse.ArgumentParser("x", description="Good.")
    parser.add_argument("--described", help="text")
    assert undescribed(parser.format_help()) == []
    case = [("x", "--help", 0, "usage: ")]
    assert not problems(case, [(0, parser.format_help())])
    assert problems(case, [(1, parser.format_help())])
    parser.add_argument("--bare")
    assert undescribed(parser.format_help()) == ["--bare BARE"]
    assert problems(case, [(0, parser.format_help())])
    assert problems(case, [(0, argparse.ArgumentParser("x").format_help())])


def test_internal_modules_exist():
    found = {name: Path(ROOT, "packages").glob(f"*/src/{name.replace('.', '/')}.py") for name in INTERNAL}
    assert all(any(files) for files in found.values())


@pytest.mark.parametrize("verb", [None, *dev.VERBS])
def test_every_verb_of_the_workspace_has_help_and_a_version(verb, capsys):
    cases = standard_cases("dev.py", verb or "")
    if verb in ("demo", "test", "lint", "gpu", "ecosystem", "bench"):  # these hand unknown options on
        cases = cases[:2]
    results = []
    for _, words, *_ in cases:
        with pytest.raises(SystemExit) as end:
            dev.main(words.split())
        output = capsys.readouterr()
        results.append((end.value.code, output.out + output.err))
    assert not problems(cases, results)


def test_the_workspace_without_a_verb_prints_the_overview_and_names_similar_verbs(capsys):
    for words, part in (([], "remove build products"), (["tset"], "Did you mean test")):
        with pytest.raises(SystemExit) as end:
            dev.main(words)
        assert end.value.code == 2 and part in capsys.readouterr().err


def test_an_option_that_is_handed_on_but_misspelt_is_named(monkeypatch, capsys):
    monkeypatch.setitem(dev.VERBS, "test", (lambda arguments: 0, "tests"))
    assert dev.main(["test", "--legz", "-k", "x", "--tb=short"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "dev.py: --legz is no option of test and is handed on. Did you mean --leg, --legs?"
    ]


def programs_of_the_sdk():
    return sorted(path.name for path in Path(sdk.resolve().home, "bin").iterdir())


def run_program(name, *words):
    path = Path(sdk.resolve().home, "bin", name)
    done = subprocess.run([path, *words], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def is_compiler(name):
    """Whether a program of the SDK is mcc, or mcc by another name."""
    folder = Path(sdk.resolve().home, "bin")
    return (folder / name).read_bytes() == (folder / "mcc").read_bytes()


def test_the_programs_of_the_emulator_are_found():
    assert {"mcc", "mthreads-gmi", "musaInfo", "musa_toolkits_version"} <= set(programs_of_the_sdk())


@pytest.mark.parametrize("name", programs_of_the_sdk())
def test_every_program_of_the_sdk_has_help_and_a_version(name):
    compiles = is_compiler(name)
    status, text = run_program(name, "--help")
    assert (
        status == 0 and text.startswith(f"usage: {'mcc' if compiles else name}") and not undescribed(text)
    ), text
    status, text = run_program(name, "--version")
    assert status == 0 and re.search(r"\d+\.\d+", text), text
    status, text = run_program(name, "--nosuch-zzz")
    # mcc hands unknown options to the host's compiler, which is not called without a source.
    assert (status == 1 and "no input files" in text) if compiles else (status == 2 and "nosuch" in text), (
        text
    )
    status, text = run_program(name)
    assert (status == 2 and "usage: " in text) if compiles else (status == 0 and text), text


def test_mthreads_gmi_names_similar_options():
    status, text = run_program("mthreads-gmi", "--list-gpu")
    assert status == 2 and "Did you mean --list-gpus" in text


def test_every_command_is_in_the_reference():
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    expected = [f"python -m torch_musa {name} --help" for name in commands_of(umbrella.parser())]
    scripts = scripts_of(FAMILY)
    modules = [
        name for name in modules_that_run(FAMILY) if name not in ("musa_port", "musa_compat.converter")
    ]
    expected += [f"{name} --help" for name in scripts] + [f"python -m {name} --help" for name in modules]
    programs = [name for name in programs_of_the_sdk() if name == "mcc" or not is_compiler(name)]
    expected += [f"/bin/{name} --help" for name in programs] + ["dev.py --help"]
    assert not [line for line in expected if line not in page]


def test_every_module_that_packs_offer_runs_with_m(shared_packages, package_server, tmp_path):
    """`python -m torch_musa.utils.simple_porting`, which the vendor documents, and all others."""
    points = metadata.entry_points()
    names = [f"torch_musa.{entry.name}" for entry in points.select(group="torch_musa.submodules.v2")]
    names += [f"torch.musa.{entry.name}" for entry in points.select(group="torch_musa.modules.v2")]
    assert len(names) > 20
    installation = Installation(tmp_path, shared_packages, tmp_path)
    program = MODULES.format(names=json.dumps(names))
    done = package_server.run(
        installation.code(installation.environment, program), installation.environment, cwd=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    # Packages have no code to run; Python says so for any of them.
    wrong = {name: text for name, text in found.items() if text and "is a package and cannot" not in text}
    assert set(found) == set(names) and not wrong


# -- the parser


@pytest.fixture
def parser():
    made = command_line.Parser(prog="x", version="x 1", description="A program.")
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    added = commands.add_parser("measure", version="x 1", description="Measures.")
    added.add_argument("--color", choices=("always", "never"))
    return made


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        ("", ["A program.", "required: COMMAND"]),
        ("measre", ["usage: x", "Did you mean measure?"]),
        ("zzz", ["usage: x", "invalid choice"]),
        ("measure --colour never", ["usage: x measure", "Did you mean --color?"]),
        ("measure --colour=never", ["usage: x measure", "Did you mean --color?"]),
        ("measure --color alwayz", ["Did you mean always?"]),
        ("measure word", ["unrecognized arguments: word"]),
    ],
)
def test_errors_of_the_parser(parser, words, texts, capsys):
    with pytest.raises(SystemExit) as end:
        parser.parse_args(words.split())
    told = capsys.readouterr().err
    assert end.value.code == 2 and all(text in told for text in texts), told


def test_the_result_has_no_attributes_of_the_parser(parser):
    assert vars(parser.parse_args(["measure", "--color", "never"])) == {"color": "never"}


def test_a_parser_without_a_version_is_refused():
    with pytest.raises(TypeError, match="version"):
        command_line.Parser(prog="x")
