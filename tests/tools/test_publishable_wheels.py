# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Wheels for a package index: symbol versions, metadata, bills of materials, the record of the last run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from workspace import WorkspaceError, packages, release, sysroot, wheel_check, wheel_metadata
from workspace.sysroot import Symbol
from workspace.wheel_check import Wheel

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


def link(target: Path, source: str, *arguments: str | Path) -> Path:
    command = ["gcc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-", "-x", "none", "-o", target, *arguments]
    subprocess.run(command, input=source, text=True, check=True)
    return target


def stub(folder: Path, soname: str, *symbols: Symbol) -> Path:
    """A library that defines the symbols, linked from the source of `sysroot.stub_source`."""
    source, versions = sysroot.stub_source(symbols)
    (folder / "stub.s").write_text(source)
    (folder / "stub.map").write_text(versions)
    target = folder / soname
    command = ["gcc", "-shared", "-nostdlib", "-o", target, folder / "stub.s", f"-Wl,-soname,{soname}"]
    subprocess.run([*command, f"-Wl,--version-script,{folder / 'stub.map'}"], check=True)
    return target


# -- symbols


def test_a_need_of_a_newer_glibc_is_found(tmp_path):
    old = stub(tmp_path, "libold.so", Symbol("f", "FUNC", 8, "GLIBC_2.28", True))
    new = stub(tmp_path, "libnew.so", Symbol("g", "FUNC", 8, "GLIBC_2.29", True))
    good = wheel_check.symbols_of(link(tmp_path / "good.so", "int f(); int h() { return f(); }", old))
    bad = wheel_check.symbols_of(
        link(tmp_path / "bad.so", "int f(), g(); int k() { return f() + g(); }", old, new)
    )
    assert good.needs == {"GLIBC": "2.28"} and bad.needs == {"GLIBC": "2.29"}
    assert wheel_check.check_symbols({"a.whl": {"good.so": good}}, set()) == []
    [found] = wheel_check.check_symbols({"a.whl": {"bad.so": bad}}, set())
    assert found == "a.whl: bad.so needs GLIBC_2.29, and manylinux_2_28_x86_64 promises less"


@pytest.mark.parametrize(
    ("family", "good", "bad"),
    [
        ("GLIBC", "2.28", "2.100"),
        ("GLIBCXX", "3.4.24", "3.4.25"),
        ("CXXABI", "1.3.11", "1.3.12"),
        ("GCC", "7.0.0", "12.0.0"),
    ],
)
def test_the_newest_version_of_each_family(family, good, bad):
    assert wheel_check.too_new({family: good}) == []
    assert wheel_check.too_new({family: bad}) == [f"{family}_{bad}"]


def test_a_symbol_that_no_library_defines_is_found(tmp_path):
    user = wheel_check.symbols_of(
        link(tmp_path / "user.so", "int f(), PyList_New(); int g() { return f() + PyList_New(); }")
    )
    maker = wheel_check.symbols_of(link(tmp_path / "maker.so", "int f() { return 1; }"))
    assert wheel_check.check_symbols({"a.whl": {"user.so": user}, "b.whl": {"maker.so": maker}}, set()) == []
    assert wheel_check.check_symbols({"a.whl": {"user.so": user}}, {"f"}) == []
    [found] = wheel_check.check_symbols({"a.whl": {"user.so": user}}, set())
    assert found == "a.whl: user.so needs f, which no library defines"


# -- stubs of older libraries


def test_a_stub_has_the_symbols_that_are_old_enough(tmp_path):
    symbols = [
        Symbol("f", "FUNC", 8, "GLIBC_2.2.5", False),
        Symbol("f", "FUNC", 8, "GLIBC_2.29", True),
        Symbol("object", "OBJECT", 272, "GLIBCXX_3.4", True),
        Symbol("variable", "TLS", 8, "GLIBCXX_3.4.11", True),
        Symbol("new_object", "OBJECT", 8, "GLIBCXX_3.4.30", True),
    ]
    library = stub(tmp_path, "libwhole.so.6", *symbols)
    assert set(sysroot.defined_symbols(library)) == set(symbols)
    (tmp_path / "out").mkdir()
    made = tmp_path / "out" / "libwhole.so.6"
    sysroot.make_stub(library, made)
    assert set(sysroot.defined_symbols(made)) == {symbols[0], symbols[2], symbols[3]}


def test_a_stub_without_a_symbol_leaves_it_undefined(tmp_path):
    both = Symbol("f", "FUNC", 8, "GLIBC_2.29", True), Symbol("other", "FUNC", 8, "GLIBC_2.2.5", True)
    library = stub(tmp_path, "libwhole.so", *both)
    (tmp_path / "out").mkdir()
    sysroot.make_stub(library, tmp_path / "out" / "libwhole.so")
    source = "int f(); int g() { return f(); }"
    with pytest.raises(subprocess.CalledProcessError):
        link(tmp_path / "user.so", source, tmp_path / "out" / "libwhole.so", "-Wl,-z,defs")
    link(tmp_path / "user.so", source, library, "-Wl,-z,defs")


# -- metadata and files

METADATA = """Metadata-Version: 2.4
Name: a-pack
Version: 1.2.3+torch2.13
Summary: A pack.
Author: torch_musa contributors
License-Expression: BSD-3-Clause
License-File: LICENSE
Classifier: Operating System :: POSIX :: Linux
Requires-Python: >=3.10
Requires-Dist: torch==2.13.*
Requires-Dist: other>=1; extra == "more"
Description-Content-Type: text/markdown

# A pack

[Python](https://www.python.org) and [below](#below).
"""
INFO = "a_pack-1.2.3+torch2.13.dist-info"


def unpacked(folder: Path, *, library: bool = True) -> Wheel:
    """A wheel that can be published."""
    info = folder / INFO
    (info / "licenses").mkdir(parents=True)
    (info / "sboms").mkdir()
    (info / "licenses" / "LICENSE").write_text("BSD 3-Clause License\n")
    (info / "METADATA").write_text(METADATA)
    (folder / "a_pack").mkdir()
    (folder / "a_pack" / "__init__.py").touch()
    parts = []
    if library:
        file = link(folder / "a_pack" / "liba.so", "int f() { return 1; }")
        digest = {"alg": "SHA-256", "content": wheel_check.digest(file)}
        parts.append({"type": "file", "name": "a_pack/liba.so", "hashes": [digest]})
    subject = {"name": "a-pack", "version": "1.2.3+torch2.13"}
    bill = {"metadata": {"component": subject}, "components": parts}
    (info / "sboms" / "a-pack.cdx.json").write_text(json.dumps(bill))
    platform = "manylinux_2_28_x86_64" if library else "any"
    return Wheel(Path(f"a_pack-1.2.3+torch2.13-py3-none-{platform}.whl"), folder)


@pytest.mark.parametrize("library", [True, False])
def test_a_wheel_that_can_be_published(tmp_path, library):
    assert wheel_check.check_publishable(unpacked(tmp_path, library=library), [str(tmp_path)]) == []


CHANGES = {
    "Summary": ("Summary: A pack.\n", "", "METADATA has no Summary"),
    "Author": ("Author: torch_musa contributors\n", "", "METADATA has no Author"),
    "License-Expression": ("License-Expression: BSD-3-Clause\n", "", "METADATA has no License-Expression"),
    "License-File": ("License-File: LICENSE\n", "", "METADATA has no License-File: LICENSE"),
    "absent licence": (
        "License-File: LICENSE\n",
        "License-File: LICENSE\nLicense-File: third_party/x/LICENSE\n",
        "METADATA names the licence third_party/x/LICENSE, and the wheel does not have it",
    ),
    "Classifier": ("Classifier: Operating System :: POSIX :: Linux\n", "", "METADATA has no Classifier"),
    "link": (
        "(#below)",
        "(../../docs/below.md)",
        "the description has the link ../../docs/below.md, which leads nowhere on an index",
    ),
    "content type": (
        "Description-Content-Type: text/markdown\n",
        "",
        "METADATA has no Description-Content-Type",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_metadata_that_lacks_something_is_refused(tmp_path, change):
    old, new, message = CHANGES[change]
    wheel = unpacked(tmp_path)
    assert METADATA.count(old) == 1
    (wheel.info / "METADATA").write_text(METADATA.replace(old, new))
    assert wheel_check.check_publishable(wheel, []) == [f"{wheel.file.name}: {message}"]


def test_an_empty_description_is_refused(tmp_path):
    wheel = unpacked(tmp_path)
    (wheel.info / "METADATA").write_text(METADATA.partition("\n\n")[0] + "\n\n")
    [found] = wheel_check.check_publishable(wheel, [])
    assert found.endswith(": the description is empty")


@pytest.mark.parametrize(
    ("library", "tag", "wanted"),
    [(True, "linux_x86_64", "manylinux_2_28_x86_64"), (False, "manylinux_2_28_x86_64", "any")],
)
def test_a_wrong_platform_tag_is_refused(tmp_path, library, tag, wanted):
    wheel = Wheel(
        Path(f"a_pack-1.2.3+torch2.13-py3-none-{tag}.whl"), unpacked(tmp_path, library=library).folder
    )
    assert wheel_check.check_tag(wheel) == [f"the platform tag is {tag}, and should be {wanted}"]


def test_a_folder_of_the_build_is_found_in_a_library(tmp_path):
    wheel = unpacked(tmp_path)
    link(tmp_path / "a_pack" / "liba.so", 'const char* where() { return "/opt/build/tree/a.cpp"; }')
    assert wheel_check.check_folders(wheel, ["/opt/build/tree", "/opt/other"]) == [
        "a_pack/liba.so holds /opt/build/tree, a folder of the machine that built it"
    ]


def test_a_bill_of_other_files_is_refused(tmp_path):
    wheel = unpacked(tmp_path)
    link(tmp_path / "a_pack" / "liba.so", "int f() { return 2; }")
    link(tmp_path / "a_pack" / "libb.so", "int g() { return 2; }")
    assert wheel_check.check_bill(wheel) == [
        "the bill of materials has another digest of a_pack/liba.so, or none",
        "the bill of materials has another digest of a_pack/libb.so, or none",
    ]


def test_a_bill_of_another_wheel_and_no_bill_are_refused(tmp_path):
    wheel = unpacked(tmp_path, library=False)
    [bill] = (wheel.info / "sboms").iterdir()
    bill.write_text(bill.read_text().replace("1.2.3", "1.2.4"))
    assert wheel_check.check_bill(wheel) == [
        "the bill of materials is one of a_pack-1.2.4+torch2.13.dist-info"
    ]
    bill.unlink()
    [found] = wheel_check.check_bill(wheel)
    assert found.endswith("sboms holds 0 bills of materials, one is needed")


def test_the_license_is_that_of_the_tree():
    for name in packages.package_names():
        assert (ROOT / "packages" / name / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes(), name


# -- additions to the metadata

README = "See [the design](../../docs/design/packs.md#gate), [docs/x.md](../../docs/x.md) and [a page](https://example.com).\n"


def completed(repository: str) -> str:
    text = METADATA.partition("\n\n")[0] + "\n\n" + README
    return wheel_metadata.completed(
        text,
        folder="packages/a-pack",
        repository=repository,
        version="1.2.3",
        license_files=["third_party/t/LICENSE"],
    )


def test_links_become_text_without_a_repository():
    text = completed("")
    assert text.endswith(
        "See the design (`docs/design/packs.md#gate`), docs/x.md and [a page](https://example.com).\n"
    )
    assert "License-File: LICENSE\nLicense-File: third_party/t/LICENSE\n" in text
    assert wheel_metadata.problems(text, ["licenses/LICENSE", "licenses/third_party/t/LICENSE"]) == []
    assert wheel_metadata.unsettled(text) == [wheel_metadata.NO_REPOSITORY]


def test_links_lead_to_the_release_in_the_repository():
    text = completed("https://example.com/musa")
    assert "[the design](https://example.com/musa/blob/v1.2.3/docs/design/packs.md#gate)" in text
    assert "Project-URL: Repository, https://example.com/musa\n" in text
    assert wheel_metadata.unsettled(text) == []


@pytest.mark.parametrize("name", packages.package_names())
def test_links_of_every_readme_exist(name):
    """A link that is wrong in the tree would be wrong on an index too."""
    for match in wheel_metadata.LINK.finditer((ROOT / "packages" / name / "README.md").read_text()):
        path = wheel_metadata.resolve(match.group(2).partition("#")[0], f"packages/{name}")
        assert (ROOT / path).exists(), match.group(0)


# -- builds in several folders


def compiled_in(tree: Path, options: list[str]) -> bytes:
    """A library that contains the name of its source file, compiled in the folder of a tree."""
    tree.mkdir(parents=True, exist_ok=True)
    source = tree / "a.cpp"
    source.write_text("const char* where() { return __FILE__; }\n")
    command = ["g++", "-g", "-c", *options, source, "-o", tree / "a.o"]
    subprocess.run(command, check=True, cwd=tree)
    return (tree / "a.o").read_bytes()


def test_a_copy_of_the_tree_compiles_to_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(release, "ROOT", tmp_path)
    copy = tmp_path / "build" / "tree"
    made = [compiled_in(tree, release.prefix_maps(tree)) for tree in (tmp_path, copy)]
    assert made[0] == made[1] and str(tmp_path).encode() not in made[0]
    assert compiled_in(copy, release.prefix_maps(tmp_path)) != made[0]
    assert str(tmp_path).encode() in compiled_in(copy, [])


def test_libraries_for_an_index_are_linked_without_the_build_folders_search_path():
    setting = "--config-settings=cmake.define.CMAKE_BUILD_WITH_INSTALL_RPATH=ON"
    assert setting in packages.Options().config_settings("manylinux")
    assert setting not in packages.Options().config_settings()


# -- auditwheel


@pytest.mark.parametrize("platform", ["any", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64"])
def test_auditwheels_platforms_that_are_old_enough(platform):
    assert release.check_audit({"platform": platform, "libraries": ["libc10.so", "libmudnn.so"]}) == []


@pytest.mark.parametrize("platform", ["manylinux_2_31_x86_64", "linux_x86_64"])
def test_auditwheels_platform_that_is_too_new_is_refused(platform):
    assert release.check_audit({"platform": platform, "libraries": []}) == [
        f"auditwheel finds symbols of {platform}"
    ]


def test_a_library_of_the_machine_is_refused():
    [found] = release.check_audit({"platform": "manylinux_2_28_x86_64", "libraries": ["libfoo.so.1"]})
    assert "libfoo.so.1" in found


def test_libraries_of_the_tags_systems_are_not_foreign():
    """The symbols are those of an older platform, whose list of libraries is shorter."""
    found = {"external_libs": {"libc10.so": None, "libmvec.so.1": None, "libfoo.so": None}}
    other, both = "linux_x86_64", ["libmvec.so.1", "libfoo.so"]
    # The wheel's platform, a platform that it would fit without some libraries, these, and the foreign ones.
    for tag, platform, lacking, expected in (
        (other, "manylinux_2_28_x86_64", ["libc10.so", "libfoo.so"], ["libfoo.so"]),
        (other, "manylinux_2_31_x86_64", ["libc10.so"], both),
        ("manylinux_2_27_x86_64", "manylinux_2_17_x86_64", ["libmvec.so.1"], []),
        ("manylinux_2_31_x86_64", "manylinux_2_30_x86_64", ["libmvec.so.1"], both),
    ):
        audit = {**found, "overall_tag": tag, "policy_upgrades": {platform: {"libs_to_eliminate": lacking}}}
        libraries = list(release.beyond_the_platform(audit))
        refused = release.check_audit({"platform": "manylinux_2_27_x86_64", "libraries": libraries})
        assert [text.split()[2].rstrip(",") for text in refused] == expected


# -- the record of the last run


def shortcomings(record: dict, names: list[str], every: list[str]) -> list[str]:
    """Returns the reasons why the record of a run is not sufficient for a release.

    names: packages that the record must have. every: all packages of a release; a record that has them all
    must have two equal digests of each.
    """
    wheels = record["wheels"]
    complete = wheels.keys() >= set(every)
    found = [f"{name}: not in the record" for name in names if name not in wheels]
    found += [f"{name}: no package of a release" for name in wheels if name not in every]
    for name, entry in wheels.items():
        if entry["twine"] != "PASSED":
            found.append(f"{name}: twine says {entry['twine']}")
        if entry["second_sha256"] is None:
            found += [f"{name}: not built twice"] * complete
        elif entry["second_sha256"] != entry["sha256"]:
            found.append(f"{name}: two builds differ")
        found += [f"{name}: {text}" for text in release.check_audit(entry["auditwheel"])]
        found += [
            f"{name}: {what}" for needs in entry["libraries"].values() for what in wheel_check.too_new(needs)
        ]
    return found


def test_the_recorded_wheels_could_be_published():
    """A wheel that was not built has no entry; the wheels that a device needs must have one."""
    record = json.loads(release.RECORD.read_text())
    names = packages.package_names()
    core = names[: packages.parse_core_count((ROOT / "pyproject.toml").read_text())]
    assert shortcomings(record, core, names) == []
    assert sum(bool(entry["libraries"]) for entry in record["wheels"].values()) >= 2


def newest(versions: list[str]) -> str:
    """The version with the greatest numbers."""
    return max(versions, key=lambda text: [int(number) for number in re.findall(r"\d+", text)])


def test_the_page_says_how_many_wheels_are_recorded_and_how_many_were_built_twice():
    wheels = json.loads(release.RECORD.read_text())["wheels"]
    twice = sum(entry["second_sha256"] == entry["sha256"] for entry in wheels.values())
    needs = [need for entry in wheels.values() for need in entry["libraries"].values()]
    glibc, libstdcxx = (newest([need.get(name, "0") for need in needs]) for name in ("GLIBC", "GLIBCXX"))
    platform = newest([entry["auditwheel"]["platform"].removesuffix("_x86_64") for entry in wheels.values()])
    names = packages.package_names()
    page = (ROOT / "docs" / "design" / "releases.md").read_text()
    [row] = re.findall(r"^\| wheels \| `dev\.py wheels --twice` \| (.*)$", page, re.MULTILINE)
    assert row.startswith(f"{len(wheels)} of {len(names)} wheels are recorded, {twice} of them built twice ")
    assert f"They need glibc {glibc}, GLIBCXX {libstdcxx} and `{platform}` (auditwheel) at most" in row


GOOD = {
    "twine": "PASSED",
    "sha256": "a",
    "second_sha256": "a",
    "auditwheel": {"platform": "any", "libraries": []},
    "libraries": {},
}


def test_shortcomings_of_a_record_are_found():
    entry = {
        "twine": "FAILED",
        "sha256": "a",
        "second_sha256": "b",
        "auditwheel": {"platform": "manylinux_2_35_x86_64", "libraries": []},
        "libraries": {"liba.so": {"GLIBC": "2.35"}},
    }
    both = ["a-pack", "b-pack"]
    wheels = {"a-pack": entry, "c-pack": {**GOOD, "second_sha256": None}}
    assert shortcomings({"wheels": wheels}, both, both) == [
        "b-pack: not in the record",
        "c-pack: no package of a release",
        "a-pack: twine says FAILED",
        "a-pack: two builds differ",
        "a-pack: auditwheel finds symbols of manylinux_2_35_x86_64",
        "a-pack: GLIBC_2.35",
    ]


def test_a_complete_record_without_a_second_build_is_found():
    record = {"wheels": {"a-pack": GOOD, "b-pack": {**GOOD, "second_sha256": None}}}
    assert shortcomings(record, ["a-pack"], ["a-pack", "b-pack"]) == ["b-pack: not built twice"]
    assert shortcomings(record, ["a-pack"], ["a-pack", "b-pack", "c-pack"]) == []
    record["wheels"]["b-pack"] = GOOD
    assert shortcomings(record, ["a-pack"], ["a-pack", "b-pack"]) == []


# -- one package after another


class Builds:
    """Stands in for the compilers: a wheel contains the state of the tree that it was built from.

    Attributes:
        state: the state of the tree.
        made: names of the packages that were built, and "again NAME" for a second build.
        stop_at: the package whose build raises.
    """

    def __init__(self, folder: Path) -> None:
        self.target = folder / "dist"
        self.target.mkdir()
        self.again = folder / "again"
        self.again.mkdir()
        self.state = "one"
        self.second = "one"
        self.made: list[str] = []
        self.stop_at = ""

    def build(self, name: str, options, tree: Path, target: Path, repository: str) -> Path:
        if name == self.stop_at:
            raise WorkspaceError("the power failed")
        self.made.append(name)
        return self.wheel(target, name, self.state)

    def build_again(self, name: str, options, repository: str) -> Path:
        self.made.append(f"again {name}")
        return self.wheel(self.again, name, self.second)

    def wheel(self, target: Path, name: str, text: str) -> Path:
        file = target / f"{name}.whl"
        file.write_text(text)
        return file

    def run(self, *, twice: bool = False, only: tuple[str, ...] = ()) -> list[str]:
        """The builds of a run of the command."""
        self.made = []
        release.run(packages.Options(), self.target, twice=twice, only=only)
        return self.made

    def record(self) -> dict:
        return json.loads(release.RECORD.read_text())["wheels"]


ENTRY = {"bytes": 1, "libraries": {}, "second_sha256": None, "twine": "PASSED", "unsettled": []}
ENTRY["auditwheel"] = {"platform": "any", "libraries": []}


@pytest.fixture
def builds(tmp_path, monkeypatch) -> Builds:
    made = Builds(tmp_path)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(release, "STAMPS", tmp_path / "stamps")
    monkeypatch.setattr(release, "install_tools", lambda: None)
    monkeypatch.setattr(release, "source_date", lambda: 1)
    monkeypatch.setattr(release, "inputs", lambda options: made.state)
    monkeypatch.setattr(release, "build", made.build)
    monkeypatch.setattr(release, "build_again", made.build_again)
    monkeypatch.setattr(release, "check_together", lambda wheels, complete: [])
    monkeypatch.setattr(packages, "package_names", lambda: ["a", "b", "c"])
    (tmp_path / "pyproject.toml").write_text("[tool.musa]\n")

    def examine(file: Path):
        problems = [f"{file.name}: bad"] if file.read_text() == "bad" else []
        return problems, {**ENTRY, "file": file.name, "sha256": wheel_check.digest(file)}

    monkeypatch.setattr(release, "examine", examine)
    return made


def test_an_interrupted_run_continues_where_it_stopped(builds):
    builds.stop_at = "b"
    with pytest.raises(WorkspaceError, match="the power failed"):
        builds.run(twice=True)
    assert list(builds.record()) == ["a"]
    builds.stop_at = ""
    assert builds.run(twice=True) == ["b", "again b", "c", "again c"]
    assert all(entry["second_sha256"] == entry["sha256"] for entry in builds.record().values())
    assert builds.run(twice=True) == []


def test_packages_can_be_built_one_by_one_and_twice_later(builds, capsys):
    assert builds.run(only=("b",)) == ["b"]
    printed = capsys.readouterr().out
    assert "b.whl" in printed and printed.count("not built\n") == 2 and "not built twice" in printed
    assert builds.run(twice=True, only=("b", "c")) == ["again b", "c", "again c"]
    assert builds.run() == ["a"] and list(builds.record()) == ["a", "b", "c"]


def test_a_wheel_of_another_tree_is_not_kept(builds):
    builds.run()
    builds.state = builds.second = "two"
    assert builds.run(only=("a",)) == ["a"]
    assert list(builds.record()) == ["a"]  # the others are of the earlier tree
    assert builds.run() == ["b", "c"]


def test_a_wheel_that_was_replaced_or_removed_is_built_again(builds):
    builds.run()
    (builds.target / "a.whl").unlink()
    (builds.target / "b.whl").write_text("another")
    assert builds.run() == ["a", "b"]


def test_a_wheel_that_must_not_be_published_is_not_kept(builds):
    builds.state = "bad"
    for _ in range(2):
        with pytest.raises(WorkspaceError, match=r"must not be published:\na\.whl: bad"):
            builds.run(only=("a",))
        assert builds.made == ["a"]


def test_two_builds_that_differ_are_refused(builds):
    builds.second = "other"
    for expected in (["a", "again a"], ["again a"]):
        with pytest.raises(WorkspaceError, match=r"a\.whl: a second build gave another file: again/a\.whl"):
            builds.run(twice=True, only=("a",))
        assert builds.made == expected
    assert shortcomings({"wheels": builds.record()}, [], ["a", "b"]) == ["a: two builds differ"]


def test_a_change_of_a_python_file_counts(tmp_path, monkeypatch):
    """The stamp of an installation in place does not depend on the content of Python files."""
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "SYSROOT", tmp_path)
    monkeypatch.setattr(release, "compiler", lambda: None)
    monkeypatch.setattr(release, "source_date", lambda: 1)
    (tmp_path / "stamp").touch()
    (tmp_path / "pyproject.toml").touch()
    source = tmp_path / "packages" / "a" / "src" / "a.py"
    source.parent.mkdir(parents=True)
    states = []
    for text in ("one", "two", "one"):
        source.write_text(text)
        states.append(release.inputs(packages.Options()))
    assert states[0] == states[2] != states[1]
    monkeypatch.setattr(release, "source_date", lambda: 2)
    assert release.inputs(packages.Options()) != states[2] != release.inputs(packages.Options(debug=True))


def test_names_without_a_definition_are_only_judged_in_a_complete_set():
    user = wheel_check.Symbols(needs={"GLIBC": "2.29"}, undefined={"f"})
    for provided, count in ((None, 1), (set(), 2)):
        assert len(wheel_check.check_symbols({"a.whl": {"a.so": user}}, provided)) == count


# -- with the release tools, which are downloaded

DESCRIPTION = {
    "name": "a-pack",
    "version": "1.2.3+torch2.13",
    "license": "BSD-3-Clause",
    "purl": "pkg:pypi/a-pack@1.2.3%2Btorch2.13",
    "timestamp": 1700000000,
    "requires": [{"name": "torch", "text": "torch==2.13.*"}],
    "files": {"a_pack/liba.so": "0" * 64},
    "built_with": [],
}


@pytest.mark.full
@pytest.mark.slow
def test_a_bill_of_materials_follows_the_schema():
    release.install_tools()
    script = ROOT / "tools" / "workspace" / "sbom.py"
    bills = [sysroot.run([release.PYTHON, script], input=json.dumps(DESCRIPTION)) for _ in range(2)]
    assert bills[0] == bills[1]
    for text in ('{"bomFormat": "CycloneDX"}', "no JSON"):
        with pytest.raises(WorkspaceError, match=r"required property|no JSON"):
            sysroot.run([release.PYTHON, script, "--check"], input=text)
    broken = {**DESCRIPTION, "files": {"a_pack/liba.so": "0" * 63}}
    with pytest.raises(WorkspaceError, match="does not match"):
        sysroot.run([release.PYTHON, script], input=json.dumps(broken))


PROGRAM = """
#include <condition_variable>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <future>
#include <iostream>
#include <sys/stat.h>
#include <dlfcn.h>
static struct Constructed { int value; Constructed() : value(7) {} } constructed;
int main(int count, char**) {
  std::mutex mutex;
  std::condition_variable condition;
  bool ready = false;
  auto task = std::async(std::launch::async, [&] {
    std::lock_guard lock(mutex);
    ready = true;
    condition.notify_all();
    return std::pow(2.0, count);
  });
  std::unique_lock lock(mutex);
  condition.wait(lock, [&] { return ready; });
  lock.unlock();
  double number = 0;
  const char text[] = "3.25e2";
  std::from_chars(text, text + 6, number);
  struct stat status;
  bool caught = false;
  try {
    std::string().at(1);
  } catch (const std::exception&) {
    caught = true;
  }
  std::cout << task.get() << ' ' << number << ' ' << stat("/", &status) << ' '
            << std::filesystem::exists("/") << ' '
            << (dlopen("libm.so.6", RTLD_NOW) != nullptr) << ' ' << caught
            << ' ' << constructed.value << '\\n';
}
"""


@pytest.mark.full
@pytest.mark.slow
def test_a_program_of_the_sysroots_compiler_needs_no_newer_symbol(tmp_path):
    """With the machine's own compiler, each line of the program would need a newer symbol."""
    release.install_tools()
    source = tmp_path / "program.cpp"
    source.write_text(PROGRAM)
    for compiler in ("g++", release.compiler()):
        command = [compiler, "-std=c++20", "-O1", source, "-o", tmp_path / Path(compiler).name, "-pthread"]
        subprocess.run(command, check=True)
        output = subprocess.run([tmp_path / Path(compiler).name], capture_output=True, text=True, check=True)
        assert output.stdout == "2 325 0 1 1 1 7\n"
        needs = wheel_check.symbols_of(tmp_path / Path(compiler).name).needs
        assert bool(wheel_check.too_new(needs)) == (compiler == "g++"), needs
    assert re.match(r"[\d.]+$", needs["GLIBC"])


VECTORISED = """
#include <cmath>
extern "C" void exponentials(const float* from, float* to) {
  for (int i = 0; i < 1024; ++i) to[i] = std::exp(from[i]);
}
"""


@pytest.mark.full
@pytest.mark.slow
def test_a_library_of_the_sysroots_compiler_finds_libmvec(tmp_path):
    """g++ links libm but not libmvec, whose functions a vectorised loop calls."""
    release.install_tools()
    (tmp_path / "library.cpp").write_text(VECTORISED)
    for compiler in ("g++", release.compiler()):
        library = tmp_path / f"lib{Path(compiler).name}.so"
        command = [compiler, "-shared", "-fPIC", "-O3", "-ffast-math", "-Wl,-z,defs", "-o", library]
        subprocess.run([*command, tmp_path / "library.cpp"], check=True)
        assert "libmvec.so.1" in release.linked_libraries(library)
    assert wheel_check.too_new(wheel_check.symbols_of(library).needs) == []


def raw_wheel(folder: Path, compiler: str | Path) -> Path:
    """A wheel as a build writes it, with a library whose functions changed in glibc after 2.28."""
    content = unpacked(folder / "content", library=False).folder
    shutil.rmtree(content / INFO / "sboms")
    text = METADATA.replace("(#below)", "(../../README.md)")
    (content / INFO / "METADATA").write_text(text)
    wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n"
    (content / INFO / "WHEEL").write_text(wheel)
    source = folder / "library.cpp"
    source.write_text("#include <cmath>\ndouble power(double x, double y) { return std::pow(x, y); }\n")
    library = content / "a_pack" / "liba.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library], check=True)
    sysroot.run([sys.executable, "-m", "wheel", "pack", content, "--dest-dir", folder])
    [made] = folder.glob("*.whl")
    return made


@pytest.mark.full
@pytest.mark.slow
def test_a_finished_wheel_can_be_published_and_is_the_same_again(tmp_path):
    release.install_tools()
    (tmp_path / "raw").mkdir()
    raw = raw_wheel(tmp_path / "raw", release.compiler())
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made.append(release.finish(raw, tmp_path / name, "musa-amp", ""))
    assert made[0].read_bytes() == made[1].read_bytes()
    assert made[0].name.endswith("manylinux_2_28_x86_64.whl")
    with zipfile.ZipFile(made[0]) as archive:
        archive.extractall(tmp_path / "unpacked")
    wheel = Wheel(made[0], tmp_path / "unpacked")
    found = wheel_check.check_publishable(wheel, [str(ROOT), str(tmp_path)])
    # The package in the test is called a-pack, and `finish` was given another name for the bill.
    assert found == [f"{made[0].name}: the bill of materials is one of musa_amp-1.2.3+torch2.13.dist-info"]
    assert release.audit(made[0])["libraries"] == []


@pytest.mark.full
@pytest.mark.slow
def test_a_wheel_of_the_machines_own_compiler_is_refused(tmp_path):
    release.install_tools()
    (tmp_path / "raw").mkdir()
    raw = raw_wheel(tmp_path / "raw", "g++")
    with pytest.raises(WorkspaceError, match=r"too-recent versioned symbols"):
        release.finish(raw, tmp_path, "musa-amp", "")
