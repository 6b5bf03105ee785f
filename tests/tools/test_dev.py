# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The task runner: packages that it rebuilds, prerequisites that it checks, test legs that it counts."""

import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import dev
from workspace import WorkspaceError, gpu, legs, packages, prerequisites, progress

pytestmark = pytest.mark.once

ROOT = Path(dev.__file__).resolve().parents[1]


# -- packages: order, stamps, options


def make_package(root: Path, name: str = "musa-runtime") -> Path:
    folder = root / "packages" / name
    (folder / "csrc").mkdir(parents=True)
    (folder / "src" / "musa_runtime").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("[project]\n")
    (folder / "csrc" / "a.cpp").write_text("int a;\n")
    (folder / "src" / "musa_runtime" / "x.py").write_text("X = 1\n")
    return folder


def test_the_repository_lists_every_package_it_holds():
    listed = packages.parse_package_list((ROOT / "pyproject.toml").read_text())
    found = sorted(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))
    assert sorted({*listed, *gpu.PACKAGES}) == found  # with what `dev.py gpu` alone builds


@pytest.mark.parametrize(
    ("file", "rebuilt"),
    [("csrc/a.cpp", "a"), ("csrc/k.mu", "a"), ("csrc/a.h", "abc"), ("cmake/x.cmake", "abc")],
)
def test_a_changed_header_rebuilds_the_packages_above_and_a_changed_source_only_its_own(
    tmp_path, monkeypatch, file, rebuilt
):
    monkeypatch.setattr(packages, "ROOT", tmp_path)
    monkeypatch.setattr(packages, "upstream_packages", lambda root: {"a": [], "b": ["a"], "c": ["b"]})
    monkeypatch.setattr(packages, "environment_context", lambda pinned: "")
    for name in "abc":
        make_package(tmp_path, name)
    before = packages.current_stamps(packages.Options())
    path = tmp_path / "packages" / "a" / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("changed")
    after = packages.current_stamps(packages.Options())
    assert "".join(name for name in after if after[name] != before[name]) == rebuilt


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "csrc" / "a.cpp").write_text("int b;\n"),
        lambda folder: (folder / "csrc" / "b.cpp").write_text(""),
        lambda folder: (folder / "csrc" / "a.cpp").rename(folder / "csrc" / "c.cpp"),
        lambda folder: (folder / "pyproject.toml").write_text("[project]\nname='x'\n"),
        lambda folder: (folder / "src" / "musa_runtime" / "y.py").write_text(""),
        lambda folder: (folder / "src" / "musa_runtime" / "data.json").write_text("{}"),
    ],
    ids=["content", "new file", "renamed file", "metadata", "new module", "package data"],
)
def test_a_change_to_the_sources_changes_the_stamp(tmp_path, change):
    folder = make_package(tmp_path)
    before = packages.stamp(folder, [], [])
    assert packages.stamp(folder, [], []) == before
    change(folder)
    assert packages.stamp(folder, [], []) != before


def test_build_products_and_edited_modules_do_not_rebuild(tmp_path):
    folder = make_package(tmp_path)
    before = packages.stamp(folder, [], [])
    (folder / "build").mkdir()
    (folder / "build" / "a.o").write_text("object")
    (folder / "src" / "musa_runtime" / "__pycache__").mkdir()
    (folder / "src" / "musa_runtime" / "__pycache__" / "x.pyc").write_text("code")
    (folder / "src" / "musa_runtime" / "x.py").write_text("X = 2\n")
    assert packages.stamp(folder, [], []) == before


def test_upstream_and_context_change_the_stamp(tmp_path):
    folder = make_package(tmp_path)
    stamps = {
        packages.stamp(folder, upstream, context)
        for upstream, context in [([], []), (["u"], []), (["v"], []), ([], ["u", "v"]), ([], ["uv"])]
    }
    # ([], ["u"]) against (["u"], []) need not differ; ["u", "v"] against ["uv"] must.
    assert len(stamps) == 5


def test_a_sanitized_build_preloads_the_sanitizer_first():
    assert packages.Options().run_environment() == {}
    for sanitizer, library in (("address", "libasan.so"), ("thread", "libtsan.so")):
        preload = packages.Options(sanitizer=sanitizer).run_environment()["LD_PRELOAD"].split(":")
        assert [Path(path).name for path in preload] == [library, "libstdc++.so"]
    with pytest.raises(WorkspaceError, match=r"no libnone\.so"):
        packages.compiler_library("libnone.so")


class Installer:
    """Stands in for pip: records the packages that it builds, and can fail."""

    def __init__(self):
        self.built = []
        self.fails = False

    def __call__(self, title, command, log, env=None, cwd=None, stop=None):
        if self.fails:
            raise WorkspaceError("compiler said no")
        self.built.append(Path(command[-1]).name)
        return 0.0


@pytest.fixture
def installer(tmp_path, monkeypatch):
    for name in ("musa-emulator", "musa-runtime"):
        make_package(tmp_path, name)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.musa]\npackages = ["musa-emulator", "musa-runtime"]\n'
        '[tool.musa.built-with]\nmusa-runtime = ["musa-emulator"]\n'
    )
    (tmp_path / "stamps").mkdir()
    fake = Installer()
    monkeypatch.setattr(packages, "ROOT", tmp_path)
    monkeypatch.setattr(packages, "STAMPS", tmp_path / "stamps")
    monkeypatch.setattr(packages, "run_logged", fake)
    monkeypatch.setattr(packages, "package_names", lambda names=packages.package_names: names(tmp_path))
    return fake


def test_only_changed_packages_and_their_dependents_are_rebuilt(installer, tmp_path):
    assert packages.install_packages(packages.Options()) == ["musa-emulator", "musa-runtime"]
    assert packages.install_packages(packages.Options()) == []
    (tmp_path / "packages" / "musa-runtime" / "csrc" / "a.h").write_text("int changed;\n")
    assert packages.install_packages(packages.Options()) == ["musa-runtime"]
    (tmp_path / "packages" / "musa-emulator" / "csrc" / "a.h").write_text("int changed;\n")
    assert packages.install_packages(packages.Options()) == ["musa-emulator", "musa-runtime"]
    assert packages.install_packages(packages.Options(debug=True)) == ["musa-emulator", "musa-runtime"]


def test_a_package_that_is_built_without_the_changed_one_is_left_alone(installer, tmp_path):
    pack = make_package(tmp_path, "musa-amp")
    (pack / "pyproject.toml").write_text('[project]\ndependencies = ["torch==1.*", "musa-emulator==0.1.*"]\n')
    listed = tmp_path / "pyproject.toml"
    listed.write_text(listed.read_text().replace('runtime"]\n[', 'runtime", "musa-amp"]\n['))
    names = ["musa-emulator", "musa-runtime", "musa-amp"]
    assert packages.install_packages(packages.Options()) == names
    (tmp_path / "packages" / "musa-runtime" / "csrc" / "a.h").write_text("int changed;\n")
    assert packages.install_packages(packages.Options()) == ["musa-runtime"]
    (tmp_path / "packages" / "musa-emulator" / "csrc" / "a.h").write_text("int changed;\n")
    assert packages.install_packages(packages.Options()) == names
    # The packages that a package is built with count as well.
    (pack / "pyproject.toml").write_text('[project]\ndependencies = ["musa-runtime==0.1.*"]\n')
    assert packages.install_packages(packages.Options()) == ["musa-amp"]
    (tmp_path / "packages" / "musa-runtime" / "csrc" / "a.h").write_text("int again;\n")
    assert packages.install_packages(packages.Options()) == ["musa-runtime", "musa-amp"]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ('musa-runtime = ["musa-port"]', "musa-runtime is built with musa-port, which is not before it"),
        (
            'musa-emulator = ["musa-runtime"]',
            "musa-emulator is built with musa-runtime, which is not before it",
        ),
        ('musa-emulater = ["musa-runtime"]', "names musa-emulater, which is no package"),
    ],
)
def test_a_package_is_built_with_packages_before_it_alone(installer, tmp_path, row, complaint):
    listed = tmp_path / "pyproject.toml"
    listed.write_text(
        f"{listed.read_text().partition('[tool.musa.built-with]')[0]}[tool.musa.built-with]\n{row}\n"
    )
    with pytest.raises(WorkspaceError, match=complaint):
        packages.install_packages(packages.Options())


# Text in a CMakeLists.txt whose package is built with another one.
BUILT_WITH = {
    "find_package(musa_emulator": "musa-emulator",
    "find_package(musa_runtime": "musa-runtime",
    "include(cmake/MusaSdk.cmake)": "musa-emulator",
    "musa::mudnn": "musa-emulator-mudnn",
    "mccl.h": "musa-emulator-mccl",
    "musa_torch_kernels(": "musa-port",
}


def test_every_package_is_built_again_with_the_packages_that_its_cmake_file_uses():
    upstream = packages.upstream_packages()
    seen = set()
    for name, needed in upstream.items():
        file = ROOT / "packages" / name / "CMakeLists.txt"
        text = file.read_text() if file.is_file() else ""
        for sign, other in BUILT_WITH.items():
            if sign in text:
                seen.add(sign)
                assert other in needed, f"{name} is built with {other}; pyproject.toml does not say so"
    assert seen == set(BUILT_WITH)
    assert "musa-ops-ported" not in {other for needed in upstream.values() for other in needed}


def test_packages_that_do_not_need_each_other_are_built_at_the_same_time():
    needs = {"a": [], "b": [], "c": ["a", "b"], "d": ["c"]}
    together = threading.Barrier(2, timeout=30)
    built = []

    def build(name, stop):
        if name in "ab":
            together.wait()
        assert set(needs[name]) <= set(built)
        built.append(name)

    packages.build_in_order(list(needs), needs, build)
    assert built[2:] == ["c", "d"]


def test_a_failed_build_stops_the_one_beside_it_and_starts_no_other():
    stopped, needs = [], {"bad": [], "beside": [], "after": ["bad"]}

    def build(name, stop):
        if name == "bad":
            raise WorkspaceError("compiler said no")
        stopped.append((name, stop.wait(30)))

    with pytest.raises(WorkspaceError, match="compiler said no"):
        packages.build_in_order(list(needs), needs, build)
    assert stopped == [("beside", True)]


def test_core_leaves_out_packs_until_they_are_installed(installer, tmp_path):
    listed = tmp_path / "pyproject.toml"
    listed.write_text(listed.read_text().replace("[tool.musa]\n", "[tool.musa]\n# a device\ncore = 1\n"))
    assert packages.install_packages(packages.Options(), only=["musa-emulator"]) == ["musa-emulator"]
    assert packages.install_packages(packages.Options()) == ["musa-runtime"]
    (tmp_path / "packages" / "musa-emulator" / "csrc" / "a.h").write_text("int changed;\n")
    both = ["musa-emulator", "musa-runtime"]
    assert packages.install_packages(packages.Options(), only=["musa-emulator"]) == both


def test_wheels_need_only_the_packages_that_others_are_built_with():
    names = packages.built_against()
    assert {"musa-emulator", "musa-runtime", "musa-port", "musa-emulator-math"} <= set(names)
    # Their kernels take most of the time of a build.
    assert not {"musa-ops-ported", "musa-ops-vision", "musa-ops-math", "musa-amp"} & set(names)
    upstream = packages.upstream_packages()
    assert all(set(upstream[name]) <= set(names) for name in packages.package_names())


def test_a_failed_build_is_tried_again(installer):
    installer.fails = True
    with pytest.raises(WorkspaceError, match="compiler said no"):
        packages.install_packages(packages.Options())
    installer.fails = False
    assert packages.install_packages(packages.Options()) == ["musa-emulator", "musa-runtime"]


# -- progress


GROUPED = """cmake_minimum_required(VERSION 4.0)
project(grouped LANGUAGES CXX)
set(CMAKE_UNITY_BUILD ON)
add_library(grouped one.cpp two.cpp)
"""


@pytest.mark.parametrize(("arguments", "equal"), [(packages.CMAKE_WITH_CCACHE, True), ((), False)])
def test_a_group_of_files_has_one_text_in_every_clone(tmp_path, arguments, equal):
    texts = set()
    for clone in ("a", "b"):
        folder = tmp_path / clone
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(GROUPED)
        for name in ("one", "two"):
            (folder / f"{name}.cpp").write_text(f"int {name};\n")
        command = [
            packages.VENV / "bin" / "cmake",
            "-G",
            "Ninja",
            "-S",
            folder,
            "-B",
            folder / "build",
            *arguments,
        ]
        subprocess.run(command, check=True, capture_output=True, env=packages.build_environment())
        texts.update(path.read_text() for path in folder.glob("build/**/unity_*.cxx"))
    assert len(texts) == (1 if equal else 2)


def test_a_failed_step_shows_the_end_of_its_log_and_the_path_of_the_log(tmp_path):
    log = tmp_path / "logs" / "step.log"
    script = "print('\\n'.join(f'line {i}' for i in range(100))); raise SystemExit(3)"
    with pytest.raises(WorkspaceError) as caught:
        progress.run_logged("step", [sys.executable, "-c", script], log)
    message = str(caught.value)
    assert "line 99" in message and "line 10\n" not in message
    assert "status 3" in message and str(log) in message
    assert "line 10" in log.read_text()


def test_an_interrupted_step_ends_its_descendants_too(tmp_path, monkeypatch):
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    before = set(psutil.Process().children(recursive=True))  # earlier tests' shared memory and symbol servers
    started = []

    def interrupt(line, detail):
        children = set(psutil.Process().children(recursive=True)) - before
        if len(children) == 2:
            started.extend(children)
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.LiveLine, "update", interrupt)
    with pytest.raises(KeyboardInterrupt):
        progress.run_logged("step", [sys.executable, "-c", script], tmp_path / "step.log")
    _, alive = psutil.wait_procs(started, timeout=10)
    assert len(started) == 2 and not alive


# -- prerequisites


def test_each_probe_reports_a_missing_prerequisite(tmp_path, monkeypatch):
    assert "3.9" in prerequisites.python_version((3, 9, 1))
    assert prerequisites.python_version((3, 10, 0)) is None
    assert "Python.h" in prerequisites.python_headers(str(tmp_path))
    assert "ensurepip" in prerequisites.venv_module(lambda name: None)
    assert "GB needed" in prerequisites.disk_space(10**18)
    assert "ip is missing" in prerequisites.ip_tool(lambda name: None)
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert "no-such-compiler is not on PATH" in prerequisites.cxx_compiler()
    assert "GoogleTest" in prerequisites.googletest()
    assert "Chinese" in prerequisites.chinese_font(lambda command: subprocess.CompletedProcess(command, 1))


def lacking(*names):
    required = [prerequisites.Prerequisite(n, lambda n=n: f"{n} is missing", [f"{n}-dev"]) for n in names]
    return [*required, prerequisites.Prerequisite("present", lambda: None, ["never"])]


def test_without_root_the_message_names_everything_and_the_command(monkeypatch):
    monkeypatch.setattr(prerequisites.os, "geteuid", lambda: 1000)
    with pytest.raises(WorkspaceError) as caught:
        prerequisites.ensure(lacking("gtest", "python"))
    assert "gtest is missing" in str(caught.value) and "python is missing" in str(caught.value)
    assert "apt-get install -y gtest-dev python-dev" in str(caught.value)
    assert "never" not in str(caught.value)


def test_root_installs_and_still_reports_prerequisites_that_are_missing_afterwards(monkeypatch):
    installed = []
    monkeypatch.setattr(prerequisites.os, "geteuid", lambda: 0)
    monkeypatch.setattr(prerequisites.shutil, "which", lambda name: name)
    monkeypatch.setattr(prerequisites, "apt_install", installed.extend)
    fixed = prerequisites.Prerequisite("tool", lambda: None if installed else "no tool", ["tool"])
    prerequisites.ensure([fixed])
    assert installed == ["tool"]
    with pytest.raises(WorkspaceError, match="gtest is missing"):
        prerequisites.ensure(lacking("gtest"))


@pytest.mark.parametrize(
    ("terminal", "ci", "answer", "installs"),
    [
        (True, "", "", False),
        (True, "", "n", False),
        (True, "", "y", True),
        (True, "true", None, True),
        (False, "", None, True),
    ],
)
def test_at_a_terminal_it_asks_before_apt_get_and_ci_does_not(monkeypatch, terminal, ci, answer, installs):
    def reply(question):
        assert answer is not None and question == "Install g++ with apt-get? [y/N] "
        return answer

    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr("builtins.input", reply)
    assert prerequisites.may_install(["g++"]) == installs


def test_an_answer_of_no_lists_the_command_and_installs_nothing(monkeypatch):
    monkeypatch.setattr(prerequisites.os, "geteuid", lambda: 0)
    monkeypatch.setattr(prerequisites.shutil, "which", lambda name: name)
    monkeypatch.setattr(prerequisites, "may_install", lambda packages: False)
    monkeypatch.setattr(prerequisites, "apt_install", lambda packages: pytest.fail("installed"))
    with pytest.raises(WorkspaceError, match="apt-get install -y gtest-dev"):
        prerequisites.ensure(lacking("gtest"))


# -- test legs


SCHEDULER = "from tests.conftest import pytest_xdist_make_scheduler\n"


@pytest.mark.parametrize(
    ("body", "expected", "note"),
    [
        ("def test_a(): pass\n", (1, 0), ""),
        ("def test_a(): assert 0\n", (0, 1), ""),
        ("import os\ndef test_a(): os.abort()\ndef test_b(): pass\n", (1, 1), ""),
        ("import os\ndef test_a(): assert os.environ['LEG'] == 'set'\n", (1, 0), ""),
        ("this is not Python\n", (0, 1), ""),
        ("", (0, 1), "no test ran"),
        ("import os\ndef test_a(): os.kill(os.getppid(), 9)\n", (0, 1), "no report"),
        ("import time\ndef test_a(): time.sleep(600)\n", (0, 1), "stopped"),
    ],
    ids=["pass", "fail", "crash", "environment", "syntax error", "no test", "killed", "hang"],
)
def test_a_leg_counts_the_outcomes_and_a_run_without_results_failed(
    tmp_path, monkeypatch, body, expected, note
):
    if note == "stopped":
        monkeypatch.setattr(legs, "LEG_LIMIT_S", 5)
    (tmp_path / "test_it.py").write_text(body)
    (tmp_path / "conftest.py").write_text(SCHEDULER)  # otherwise a test that crashes counts nine times
    leg = legs.Leg("leg", [str(tmp_path), "-c", str(ROOT / "pyproject.toml"), "-q"], {"LEG": "set"})
    counts, found = legs.run_leg(leg, Path(sys.executable), {}, tmp_path / "report.xml", jobs=2)
    assert (counts["passed"], counts["failed"]) == expected and note in found


def test_the_run_ends_with_the_totals_and_fails_with_a_failed_leg(tmp_path, capfd):
    (tmp_path / "test_it.py").write_text("import os\ndef test_a(): assert os.environ['LEG'] == 'good'\n")
    arguments = [str(tmp_path), "-c", str(ROOT / "pyproject.toml"), "-q"]
    good, bad = (legs.Leg(name, arguments, {"LEG": name}) for name in ("good", "bad"))
    for chosen, totals, status in (([good], "1 passed, 0 failed", 0), ([good, bad], "1 passed, 1 failed", 1)):
        assert legs.run(chosen, Path(sys.executable), {}, tmp_path / "reports", jobs=1) == status
        assert capfd.readouterr().out.splitlines()[-1] == totals
    stopping = replace(bad, arguments=[*arguments, "-x"])
    assert legs.run([stopping, good], Path(sys.executable), {}, tmp_path / "reports", jobs=1) == 1
    assert capfd.readouterr().out.splitlines()[-1] == "0 passed, 1 failed"
    assert legs.run([], Path(sys.executable), {}, tmp_path / "reports") == 1


def test_the_legs_take_each_quarter_of_the_operators_once_and_name_paths_that_exist():
    chosen = {leg.name: leg for leg in legs.every_leg()}
    shares = {name: leg.arguments[-1] for name, leg in chosen.items() if leg.env}
    quarters = [f"--part={quarter}/4" for quarter in (1, 2, 3, 4)]
    assert sorted(shares[name] for name in ("async", "ported", "copies", "host")) == quarters
    assert sorted(shares[name] for name in ("async", "discrete", "lazy")) == quarters[:3]
    complete = legs.select([], full=True)
    assert all(("--full" in leg.arguments) == (not leg.env) for leg in complete)
    assert not any("--part" in argument for leg in complete for argument in leg.arguments)
    named = [path for leg in [*complete, *legs.tier()] for path in leg.arguments if path.startswith("tests")]
    assert len(named) > 20 and all((ROOT / path.split("::")[0]).exists() for path in named)


def test_a_path_runs_once_and_options_run_in_every_leg():
    [leg] = legs.select(["tests/tools/test_dev.py::test_x", "-x"])
    assert leg.arguments == ["tests/tools/test_dev.py::test_x", "-x"] and not leg.may_be_empty
    filtered = legs.select(["-k", "stream"], every=True)
    assert len(filtered) == len(legs.every_leg())
    assert all(leg.arguments[-2:] == ["-k", "stream"] for leg in filtered)
    assert [leg.name for leg in legs.select([], sanitized=True)] == ["changed", "sample"]
    assert [leg.name for leg in legs.select([], names=["lazy"])] == ["lazy"]
    with pytest.raises(WorkspaceError, match="there is no leg lasy; there are inline, async"):
        legs.select([], names=["lasy"])


# -- verbs


def write_demo(folder: Path, accuracy: float, plot: bytes | None) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "train_digits.json").write_text(json.dumps({"accuracy": accuracy, "plot": "plot.png"}))
    if plot is not None:
        (folder / "plot.png").write_bytes(plot)
    return folder


def test_the_demo_fails_without_accuracy_plot_or_report(tmp_path):
    assert dev.check_demo(write_demo(tmp_path / "good", 0.98, b"png"))["accuracy"] == 0.98
    with pytest.raises(WorkspaceError, match="did not run to its end"):
        dev.check_demo(tmp_path)
    with pytest.raises(WorkspaceError, match="below"):
        dev.check_demo(write_demo(tmp_path / "inaccurate", 0.96, b"png"))
    with pytest.raises(WorkspaceError, match="below"):
        dev.check_demo(write_demo(tmp_path / "nan", float("nan"), b"png"))
    with pytest.raises(WorkspaceError, match="plot"):
        dev.check_demo(write_demo(tmp_path / "no plot", 0.98, None))
    with pytest.raises(WorkspaceError, match="plot"):
        dev.check_demo(write_demo(tmp_path / "empty plot", 0.98, b""))


def run_dev(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "tools" / "dev.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_workspace_error_is_printed_without_a_traceback(monkeypatch, capsys):
    def fail(arguments):
        raise WorkspaceError("no compiler; install one")

    monkeypatch.setitem(dev.VERBS, "setup", (fail, "text"))
    assert dev.main(["setup"]) == 1
    assert capsys.readouterr().err.strip() == "no compiler; install one"


def test_clean_removes_only_build_products(tmp_path, monkeypatch):
    package = make_package(tmp_path)
    stamps = tmp_path / ".venv" / "stamps"
    products = [tmp_path / "build" / "logs", tmp_path / "dist", package / "build", stamps]
    for folder in products:
        folder.mkdir(parents=True)
    (stamps / "musa-runtime").write_text("stamp")
    (stamps / "requirements").write_text("stamp")
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    monkeypatch.setattr(packages, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(packages, "STAMPS", stamps)
    monkeypatch.setattr(packages, "package_names", lambda: ["musa-runtime"])
    sources = sorted(packages.source_files(package))
    assert dev.main(["clean"]) == 0
    assert not any(folder.exists() for folder in products[:-1])
    assert [path.name for path in stamps.iterdir()] == ["requirements"]
    assert sorted(packages.source_files(package)) == sources
    assert dev.main(["clean", "--all"]) == 0
    assert not (tmp_path / ".venv").exists()
