# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The task runner: packages that it rebuilds, prerequisites that it checks, test legs that it counts."""

import io
import json
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

import dev
from workspace import WorkspaceError, gpu, legs, packages, prerequisites, progress, tree_lint

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


def test_package_order_is_that_of_the_list_even_over_several_lines():
    text = '[tool.ruff]\npackages = ["no"]\n[tool.musa]\n# order\npackages = [\n  "b",\n  "a",\n]\n[tool.x]\n'
    assert packages.parse_package_list(text) == ["b", "a"]


@pytest.mark.parametrize("text", ["", "[tool.musa]\n", "[tool.musa]\npackages = []\n", "[tool.musa2]\n"])
def test_a_missing_package_list_is_an_error(text):
    with pytest.raises(WorkspaceError, match=r"\[tool.musa\]"):
        packages.parse_package_list(text)


def test_a_listed_package_that_does_not_exist_is_named(tmp_path):
    make_package(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.musa]\npackages = ["musa-runtime", "musa-amp"]\n')
    with pytest.raises(WorkspaceError, match="musa-amp"):
        packages.package_names(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.musa]\npackages = ["musa-runtime"]\n')
    assert packages.package_names(tmp_path) == ["musa-runtime"]


def test_the_repository_lists_every_package_it_holds():
    listed = packages.parse_package_list((ROOT / "pyproject.toml").read_text())
    found = sorted(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))
    assert sorted({*listed, *gpu.PACKAGES}) == found  # with what `dev.py gpu` alone builds


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


def test_each_variant_builds_in_its_own_folder_with_its_flags():
    variants = [packages.Options(), packages.Options(debug=True), packages.Options(sanitizer="address")]
    folders = {next(s for s in v.config_settings() if "build-dir" in s) for v in variants}
    assert len(folders) == 3
    assert not any("fsanitize" in setting for setting in packages.Options().config_settings())
    address = packages.Options(sanitizer="address").config_settings()
    assert any("CMAKE_CXX_FLAGS=-fsanitize=address,undefined" in setting for setting in address)
    assert any("CMAKE_SHARED_LINKER_FLAGS=-fsanitize=address" in setting for setting in address)
    assert "--config-settings=cmake.build-type=Debug" in packages.Options(debug=True).config_settings()


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
    (tmp_path / "packages" / "musa-runtime" / "csrc" / "a.cpp").write_text("int changed;\n")
    assert packages.install_packages(packages.Options()) == ["musa-runtime"]
    (tmp_path / "packages" / "musa-emulator" / "csrc" / "a.cpp").write_text("int changed;\n")
    assert packages.install_packages(packages.Options()) == ["musa-emulator", "musa-runtime"]
    assert packages.install_packages(packages.Options(debug=True)) == ["musa-emulator", "musa-runtime"]


def test_a_package_that_is_built_without_the_changed_one_is_left_alone(installer, tmp_path):
    pack = make_package(tmp_path, "musa-amp")
    (pack / "pyproject.toml").write_text('[project]\ndependencies = ["torch==1.*", "musa-emulator==0.1.*"]\n')
    listed = tmp_path / "pyproject.toml"
    listed.write_text(listed.read_text().replace('runtime"]\n[', 'runtime", "musa-amp"]\n['))
    names = ["musa-emulator", "musa-runtime", "musa-amp"]
    assert packages.install_packages(packages.Options()) == names
    (tmp_path / "packages" / "musa-runtime" / "csrc" / "a.cpp").write_text("int changed;\n")
    assert packages.install_packages(packages.Options()) == ["musa-runtime"]
    (tmp_path / "packages" / "musa-emulator" / "csrc" / "a.cpp").write_text("int changed;\n")
    assert packages.install_packages(packages.Options()) == names
    # The packages that a package is built with count as well.
    (pack / "pyproject.toml").write_text('[project]\ndependencies = ["musa-runtime==0.1.*"]\n')
    assert packages.install_packages(packages.Options()) == ["musa-amp"]
    (tmp_path / "packages" / "musa-runtime" / "csrc" / "a.cpp").write_text("int again;\n")
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
    assert packages.install_packages(packages.Options(), core=True) == ["musa-emulator"]
    assert packages.install_packages(packages.Options()) == ["musa-runtime"]
    (tmp_path / "packages" / "musa-emulator" / "csrc" / "a.cpp").write_text("int changed;\n")
    assert packages.install_packages(packages.Options(), core=True) == ["musa-emulator", "musa-runtime"]


def test_the_core_of_the_repository_is_a_device_without_packs():
    text = (ROOT / "pyproject.toml").read_text()
    core = packages.parse_package_list(text)[: packages.parse_core_count(text)]
    assert core == ["musa-emulator", "musa-runtime", "torch-musa"]


def test_a_package_with_a_wheel_is_installed_from_it_and_the_others_are_built(installer, tmp_path):
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "musa_emulator-0.1.0-py3-none-any.whl").touch()
    names = ["musa-emulator", "musa-runtime"]
    assert packages.install_packages(packages.Options(), wheels=wheels) == names
    assert installer.built == ["musa_emulator-0.1.0-py3-none-any.whl", "musa-runtime"]
    # The wheel may have been replaced; without the folder, the package is installed in place.
    assert packages.install_packages(packages.Options(), wheels=wheels) == ["musa-emulator"]
    assert packages.install_packages(packages.Options()) == ["musa-emulator"]
    assert installer.built[2:] == ["musa_emulator-0.1.0-py3-none-any.whl", "musa-emulator"]
    assert packages.install_packages(packages.Options()) == []


def test_a_failed_build_is_tried_again(installer):
    installer.fails = True
    with pytest.raises(WorkspaceError, match="compiler said no"):
        packages.install_packages(packages.Options())
    installer.fails = False
    assert packages.install_packages(packages.Options()) == ["musa-emulator", "musa-runtime"]


# -- progress


def test_a_failed_step_shows_the_end_of_its_log_and_the_path_of_the_log(tmp_path):
    log = tmp_path / "logs" / "step.log"
    script = "print('\\n'.join(f'line {i}' for i in range(100))); raise SystemExit(3)"
    with pytest.raises(WorkspaceError) as caught:
        progress.run_logged("step", [sys.executable, "-c", script], log)
    message = str(caught.value)
    assert "line 99" in message and "line 10\n" not in message
    assert "status 3" in message and str(log) in message
    assert "line 10" in log.read_text()


def test_a_step_logs_its_output_and_its_errors(tmp_path):
    log = tmp_path / "step.log"
    script = "import sys; print('out'); print('err', file=sys.stderr)"
    assert progress.run_logged("step", [sys.executable, "-c", script], log) >= 0
    assert {"out", "err"} <= set(log.read_text().splitlines())


def test_a_step_that_is_stopped_ends_and_reports_it(tmp_path):
    stop = threading.Event()
    stop.set()
    with pytest.raises(WorkspaceError, match="another step failed"):
        progress.run_logged(
            "step", [sys.executable, "-c", "import time; time.sleep(600)"], tmp_path / "step.log", stop=stop
        )


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


def test_the_live_line_is_redrawn_on_a_terminal_and_sparse_elsewhere():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        line = progress.LiveLine("building x", stream)
        line.update("[1/9] a.o")
        line.update("[2/9] b.o")
        line.finish("done")
    assert terminal.getvalue().count("\n") == 1 and "[2/9] b.o" in terminal.getvalue()
    assert pipe.getvalue().splitlines()[0] == "building x ..."
    assert "[1/9]" not in pipe.getvalue() and "done" in pipe.getvalue()


def test_the_older_of_two_live_lines_on_a_terminal_is_drawn():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    older, younger = (progress.LiveLine(name, terminal) for name in ("older", "younger"))
    younger.start += 1
    younger.update("hidden")
    older.finish("done")
    younger.update("shown")
    assert "hidden" not in terminal.getvalue() and "shown" in terminal.getvalue()


# -- prerequisites


def test_this_machine_has_the_prerequisites_of_the_tests():
    assert prerequisites.problems(prerequisites.BUILD) == []


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


def test_an_old_compiler_is_distinguished_from_a_new_one(tmp_path, monkeypatch):
    old = tmp_path / "old-g++"
    old.write_text("#!/bin/sh\ncat > /dev/null\nexit 1\n")
    old.chmod(0o755)
    monkeypatch.setenv("CXX", str(old))
    assert "too old" in prerequisites.cxx_compiler()
    monkeypatch.setattr(prerequisites, "MIN_GXX", 1000)
    monkeypatch.setenv("CXX", "g++")
    assert "g++ 1000" in prerequisites.cxx_compiler()


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


def test_a_full_disk_is_not_left_to_apt(monkeypatch):
    monkeypatch.setattr(prerequisites.os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        prerequisites, "apt_install", lambda names: pytest.fail("apt cannot fix a full disk")
    )
    with pytest.raises(WorkspaceError, match="free some space"):
        prerequisites.ensure([prerequisites.Prerequisite("disk", lambda: prerequisites.disk_space(10**18))])


# -- test legs

REPORT = """<testsuites><testsuite>
<testcase name="good"/>
<testcase classname="tests.some" name="bad"><failure message="x">first line
E   the last line</failure></testcase>
<testcase name="broken"><error message="fixture"/></testcase>
<testcase name="known"><skipped type="pytest.xfail"/></testcase>
</testsuite></testsuites>"""

LEG = legs.Leg("leg", ["tests"])


def report(tmp_path, text=REPORT):
    path = tmp_path / "report.xml"
    path.write_text(text)
    return path


def test_failures_and_errors_both_count_as_failed(tmp_path):
    result = legs.tally(LEG, report(tmp_path), 1)
    assert (result.passed, result.failed, result.skipped) == (1, 2, 1)


def test_the_summary_shows_the_test_and_the_message_of_each_failure(tmp_path):
    text, _ = legs.summary([legs.tally(LEG, report(tmp_path), 1)])
    assert "Leg leg, failed: tests.some::bad\n    first line\n    E   the last line\n" in text
    assert "::broken" in text
    assert "good" not in text and "known" not in text


def test_a_crash_without_a_report_is_a_failure(tmp_path):
    result = legs.tally(LEG, tmp_path / "none.xml", -11)
    assert result.failed == 1 and "-11" in result.note


def test_a_bad_exit_status_is_a_failure_even_when_each_test_passed(tmp_path):
    passed = report(tmp_path, '<testsuites><testcase name="good"/></testsuites>')
    assert legs.tally(LEG, passed, 3).failed == 1
    assert legs.tally(LEG, passed, 0).failed == 0


def test_a_leg_that_ran_no_test_failed_unless_the_user_filtered_it(tmp_path):
    nothing = report(tmp_path, "<testsuites/>")
    assert legs.tally(LEG, nothing, 5).failed == 1
    assert legs.tally(LEG, nothing, 0).failed == 1
    assert legs.tally(legs.Leg("leg", [], may_be_empty=True), nothing, 5).failed == 0


def test_the_summary_ends_with_the_totals_alone_and_the_right_status():
    good, bad = legs.Result(LEG, passed=3), legs.Result(LEG, passed=2, failed=1)
    text, status = legs.summary([good, bad])
    assert text.splitlines()[-1] == "5 passed, 1 failed" and status == 1
    text, status = legs.summary([good, good])
    assert text.splitlines()[-1] == "6 passed, 0 failed" and status == 0
    assert legs.summary([])[1] == 1


def stand_in(tmp_path: Path, script: str) -> Path:
    """An interpreter that runs ``script`` in place of pytest; it writes its report to the file
    ``$report``."""
    path = tmp_path / "python"
    find_report = 'for a in "$@"; do case "$a" in --junitxml=*) report="${a#*=}";; esac; done'
    path.write_text(f"#!/bin/bash\nset -e\n{find_report}\n{script}")
    path.chmod(0o755)
    return path


PASSED = "<testsuites><testcase name='good'/></testsuites>"


def test_legs_run_at_the_same_time_and_their_output_is_printed_leg_by_leg(tmp_path, capfd):
    # Each leg ends only after the other has begun.
    python = stand_in(
        tmp_path,
        f"""touch {tmp_path}/$name; echo begin $name
        for i in $(seq 300); do [ -e {tmp_path}/$other ] && break; sleep 0.1; done
        [ -e {tmp_path}/$other ]; echo end $name; echo "{PASSED}" > "$report" """,
    )
    pair = [legs.Leg(n, ["tests"], {"name": n, "other": o}) for n, o in (("one", "two"), ("two", "one"))]
    results = legs.run_legs(pair, python, {}, tmp_path / "reports", jobs=2)
    assert [(r.leg.name, r.passed, r.failed) for r in results] == [("one", 1, 0), ("two", 1, 0)]
    output = capfd.readouterr().out
    for name in ("one", "two"):
        assert f"begin {name}\nend {name}\n" in output


def test_one_job_runs_leg_after_leg_on_the_terminal(tmp_path, capfd):
    python = stand_in(tmp_path, f'echo runs $name; echo "{PASSED}" > "$report"; test $name != two')
    pair = [legs.Leg(name, ["tests"], {"name": name}) for name in ("one", "two")]
    results = legs.run_legs(pair, python, {}, tmp_path / "reports", jobs=1)
    assert [result.failed for result in results] == [0, 1]
    out = capfd.readouterr().out
    assert out.index("== one") < out.index("runs one") < out.index("== two") < out.index("runs two")


def test_an_interrupt_ends_the_running_legs_and_starts_no_other(tmp_path, monkeypatch):
    python = stand_in(tmp_path, f"echo $$ > {tmp_path}/$name; sleep 60")
    three = [legs.Leg(name, ["tests"], {"name": name}) for name in ("one", "two", "three")]

    def update(*_):
        if all((tmp_path / name).exists() and (tmp_path / name).read_text() for name in ("one", "two")):
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.LiveLine, "update", update)
    with pytest.raises(KeyboardInterrupt):
        legs.run_legs(three, python, {}, tmp_path / "reports", jobs=2)
    assert not any(psutil.pid_exists(int((tmp_path / name).read_text())) for name in ("one", "two"))
    assert not (tmp_path / "three").exists()


def test_the_default_legs_cover_each_mode_and_strict_memory():
    chosen = {leg.name: leg for leg in legs.select([])}
    assert chosen["async"].env == {"MUSA_EMULATOR_MODE": "async"}
    assert chosen["lazy"].env == {"MUSA_EMULATOR_MODE": "lazy"}
    assert chosen["strict"].env == {"MUSA_EMULATOR_MEMORY": "strict"}
    assert chosen["strict"].arguments[0] == "tests/musa_runtime"
    named = [argument for argument in chosen["strict"].arguments if argument.startswith("tests/")]
    assert {"tests/musa_amp", "tests/conformance/test_optimizer_db.py"} < set(named)
    assert any(argument.startswith("tests/musa_distributed/") for argument in named)
    assert all((ROOT / argument.split("::")[0]).exists() for argument in named)
    # Operators with and without packs, in memory that the host can address and in memory that it cannot.
    assert chosen["host"].env["TORCH_MUSA_OPS"] == "host"
    assert chosen["discrete"].env["TORCH_MUSA_OPS"] == "mudnn,host-copy"
    assert chosen["discrete"].env["MUSA_EMULATOR_MEMORY"] == "strict"
    assert chosen["ported"].env["TORCH_MUSA_OPS"] == "ported,host-copy"
    assert chosen["ported"].env["MUSA_EMULATOR_MEMORY"] == "strict"
    shares = {name: leg.arguments[-1] for name, leg in chosen.items() if leg.env}
    quarters = [f"--part={quarter}/4" for quarter in (1, 2, 3, 4)]
    assert sorted(shares[name] for name in ("async", "ported", "discrete", "host")) == quarters
    assert sorted(shares[name] for name in ("async", "strict", "lazy")) == quarters[:3]
    complete = legs.select([], full=True)
    assert all(("--full" in leg.arguments) == (not leg.env) for leg in complete)
    assert not any("--part" in argument for leg in complete for argument in leg.arguments)


def test_the_shards_of_the_first_leg_hold_each_folder_once():
    rest, *shards = [leg.arguments for leg in legs.select([]) if not leg.env]
    named = [path for arguments in shards for path in arguments]
    assert rest == ["tests", *(f"--ignore={path}" for path in named)] and len(set(named)) == len(named)
    assert all((ROOT / path).is_dir() for path in named)


def test_a_path_runs_once_and_options_run_in_every_leg():
    [leg] = legs.select(["tests/tools/test_dev.py::test_x", "-x"])
    assert leg.arguments == ["tests/tools/test_dev.py::test_x", "-x"] and not leg.may_be_empty
    filtered = legs.select(["-k", "stream"])
    assert len(filtered) == len(legs.select([]))
    assert all(leg.arguments[-2:] == ["-k", "stream"] for leg in filtered)
    assert {leg.name.split("-")[0] for leg in legs.select([], sanitized=True)} == {"inline"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def test_a(): pass\n", (1, 0)),
        ("def test_a(): assert 0\n", (0, 1)),
        ("import os\ndef test_a(): os.abort()\n", (0, 1)),
        ("import os\ndef test_a(): assert os.environ['LEG'] == 'set'\n", (1, 0)),
        ("this is not Python\n", (0, 1)),
        ("", (0, 1)),
    ],
    ids=["pass", "fail", "crash", "environment", "syntax error", "no test"],
)
def test_a_leg_runs_pytest_and_counts_the_outcomes(tmp_path, body, expected):
    (tmp_path / "test_it.py").write_text(body)
    leg = legs.Leg("leg", [str(tmp_path), "-c", str(ROOT / "pyproject.toml"), "-q"], {"LEG": "set"})
    result = legs.run_leg(leg, Path(sys.executable), {}, tmp_path / "reports")
    assert (result.passed, result.failed) == expected


def test_a_leg_that_hangs_is_stopped(tmp_path, monkeypatch):
    (tmp_path / "test_it.py").write_text("import time\ndef test_a(): time.sleep(600)\n")
    monkeypatch.setattr(legs, "LEG_LIMIT_S", 1)
    result = legs.run_leg(legs.Leg("leg", [str(tmp_path)]), Path(sys.executable), {}, tmp_path / "reports")
    assert result.failed == 1 and "stopped" in result.note


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


def test_help_lists_every_verb():
    listed = run_dev("--help")
    assert listed.returncode == 0
    assert all(
        verb in listed.stdout for verb in ("demo", "test", "setup", "wheels", "lint", "bench", "clean")
    )


def test_an_unknown_verb_an_unknown_argument_and_two_sanitizers_are_refused():
    assert run_dev("tset").returncode == 2
    assert run_dev("setup", "--fast").returncode == 2
    assert run_dev("setup", "--asan", "--tsan").returncode == 2


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


# -- the rules of the tree

HEAD = "# SPDX-License-Identifier: BSD-3-Clause\n# Copyright (c) torch_musa contributors\n"


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.py", "x = 1\n", "SPDX"),
        ("a.cpp", "#include <x>\n" * 5 + HEAD, "SPDX"),
        ("a.py", HEAD + "x = 1\n" * 800, "802 lines"),
        ("a.md", "see " + "/" + "home/someone/x\n", "a.md:1: a path"),
        ("a/CMakeLists.txt", "project(a)\nfind_package(Torch REQUIRED)\n", "CMakeLists.txt:2: find_package("),
        ("aConfig.cmake.in", "  find_dependency( Torch HINTS x)\n", "find_package(Torch) fails"),
        ("a.py", HEAD + "open('" + "/" + "tmp/x')\n", "a.py:3: a path"),
        (
            "a.cpp",
            HEAD + 'TORCH_CHECK(false, "Wrong.\\n' + "Cure" + ': none");\n',
            "a.cpp:3: 'Cure",
        ),
        ("a.md", "To m" + "end it: wait\n", "the label is 'Fix:'"),
        ("a.py", HEAD + "pytestmark = pytest.mark.host_addressable\n", "a.py:3: host_addressable marks all"),
        ("a.py", HEAD + "pytestmark = [once, mark.host_addressable('why')]\n", "marks all tests of a module"),
        ("a.py", HEAD + "@pytest.mark.host_addressable\ndef test(): pass\n", "without a reason"),
        ("a.py", HEAD + "@pytest.mark.host_addressable('')\ndef test(): pass\n", "without a reason"),
        ("a.py", HEAD + "x = param(1, marks=mark.host_addressable)\n", "without a reason"),
        ("a.py", HEAD + "assert a == 1 if b else 2\n", "a.py:3: this assertion holds whenever"),
        ("a.md", "one\n" + "<" * 7 + " HEAD\n", "a.md:2: a merge was left half done"),
        ("a.md", "=" * 7 + "\nother\n" + ">" * 7 + " branch\n", "a.md:3: a merge was left half done"),
    ],
)
def test_the_tree_lint_finds_each_kind_of_error(name, text, complaint):
    [found] = tree_lint.check_text(name, text)
    assert complaint in found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", HEAD),
        ("a.py", ""),
        ("a.json", "{}\n" * 2000),
        ("a.py", HEAD + "x = 'a/tmp/b', '/usr/local/musa'\n"),
        ("a.py", HEAD + "@pytest.mark.host_addressable('an order of CPU kernels')\ndef test(): pass\n"),
        ("a.py", HEAD + "raise ValueError('Wrong. Fix: the cure: none')\n"),
        ("a.py", HEAD + "assert a == (1 if b else 2)\nassert a == b if c else a < b\n"),
        ("a.cmake", "# Not find_package(Torch)\nfind_package(TorchVision)\n"),
        ("a.md", "A title\n=======\n\nx <<<<<<< y\n"),
    ],
)
def test_the_tree_lint_leaves_good_files_alone(name, text):
    assert tree_lint.check_text(name, text) == []


def test_the_tree_lint_reads_the_files_that_git_would_commit(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    (tmp_path / "ignored.py").write_text("x = 1\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    (tmp_path / "new.py").write_text("x = 1\n")
    [found] = tree_lint.check_tree(tmp_path)
    assert found.startswith("new.py:1")
