# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Our libraries call only functions that the real MUSA SDK is known to have.

An entry point that only the emulator had would link here and fail to load on a machine with the vendor's SDK.
Types, enumerators and macros leave no symbol in a library, so they are read from the sources.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness import sdk_names, skips
from tests.harness.elf import undefined_symbols

# These tests do not depend on the execution mode of this process.
pytestmark = pytest.mark.once

SDK_SYMBOLS = Path(__file__).parents[1] / "data" / "sdk_symbols.txt"

# All packages with libraries; packages that are not installed are skipped.
PACKAGES = ("musa_runtime", "musa_ops_mudnn", "musa_ops_ported", "musa_amp", "musa_distributed")

# Entry points of the SDK's C libraries. Functions that mcc inserts into compiled kernels have other names.
_OF_THE_SDK = re.compile(r"(musa|mu|mccl|mublas|murand|mufft|musparse|musolver|mupti)[A-Z]\w*")


def _listed() -> set[str]:
    return set(sdk_names.read_list(SDK_SYMBOLS))


def _demangled(symbol: str) -> str:
    demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    text = demangle(symbol.encode(), None, None, ctypes.byref(status))
    if not text:
        return symbol
    try:
        return ctypes.string_at(text).decode()
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))


def unlisted(symbols: set[str], listed: set[str]) -> set[str]:
    """Returns those of `symbols` that belong to the SDK and are not in the list."""
    missing = set()
    for symbol in symbols:
        name = _demangled(symbol) if symbol.startswith("_Z") else symbol
        if symbol.startswith("_Z"):
            match = re.search(r"\bmusa::dnn::\w+", name)
            # Only the name before the arguments counts: our functions may take muDNN types.
            if match and match.start() < (name + "(").index("(") and match.group() not in listed:
                missing.add(name)
        elif _OF_THE_SDK.fullmatch(name) and name not in listed:
            missing.add(name)
    return missing


def _libraries() -> list[Path]:
    libraries = []
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec else []:
            libraries += [*Path(place).rglob("*.so"), *Path(place).rglob("*.so.[0-9]*")]
    # An editable installation has its extension elsewhere; it is found through the loaded modules.
    try:
        import musa_runtime._C as extension
    except ImportError:
        pass
    else:
        place = Path(extension.__file__).parent
        libraries += [*place.glob("*.so"), *place.glob("lib/*.so")]
    return sorted({library.resolve() for library in libraries})


def test_the_libraries_use_listed_entry_points_only(musa):
    libraries = _libraries()
    names = {library.name for library in libraries}
    assert {"libmusa_runtime.so", "libmusa_native_ops.so"} <= names, f"found only {sorted(names)}"
    listed = _listed()
    found = {library.name: sorted(unlisted(undefined_symbols(library), listed)) for library in libraries}
    assert not any(found.values()), {name: symbols for name, symbols in found.items() if symbols}


def test_the_runtime_does_use_the_sdk(musa):
    used = set().union(*(undefined_symbols(library) for library in _libraries()))
    assert {"musaMalloc", "musaFree", "musaMemcpyAsync", "musaGetDeviceCount"} <= used


def test_an_unlisted_entry_point_is_refused():
    listed = _listed()
    assert (
        unlisted({"musaMalloc", "malloc", "musa_runtime_abi", "mutex_lock", "mcclAllReduce"}, listed) == set()
    )
    assert unlisted({"musaEmulatorFailCall"}, listed) == {"musaEmulatorFailCall"}
    assert unlisted({"musaMallocFaster", "muMakeTea", "mcclTeleport", "mublasSgemm"}, listed) == {
        "musaMallocFaster",
        "muMakeTea",
        "mcclTeleport",
        "mublasSgemm",
    }


def test_muDNN_classes_are_checked_by_their_demangled_names():
    listed = _listed()
    # musa::dnn::Handle::Handle(int), then a class that is not in the list.
    assert unlisted({"_ZN4musa3dnn6HandleC1Ei"}, listed) == set()
    (refused,) = unlisted({"_ZN4musa3dnn6WizardC1Ei"}, listed)
    assert refused.startswith("musa::dnn::Wizard")
    # ours::f(musa::dnn::Wizard&) does not belong to the SDK.
    assert unlisted({"_ZN4ours1fERN4musa3dnn6WizardE"}, listed) == set()


def test_a_library_that_calls_a_function_outside_the_sdk_is_refused(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        skips.skip_permanently("glibc-tools", "a C compiler")
    (tmp_path / "bad.c").write_text("int musaMallocFaster(void); int f(void) { return musaMallocFaster(); }")
    library = tmp_path / "bad.so"
    command = [compiler, "-shared", "-fPIC", "-Wl,--unresolved-symbols=ignore-all"]
    subprocess.run([*command, "-o", str(library), str(tmp_path / "bad.c")], check=True)
    assert unlisted(undefined_symbols(library), _listed()) == {"musaMallocFaster"}


def test_a_file_that_is_not_a_library_is_refused(tmp_path):
    (tmp_path / "x.so").write_bytes(b"no library")
    with pytest.raises(ValueError, match="ELF"):
        undefined_symbols(tmp_path / "x.so")


def _sources() -> dict[str, str]:
    """Returns the C++ sources of the packages that use the SDK, by path."""
    root = Path(__file__).parents[2] / "packages"
    found = {}
    for package in PACKAGES:
        for path in (root / package.replace("_", "-") / "csrc").rglob("*"):
            if path.suffix in (".cpp", ".h", ".mu", ".muh"):
                found[str(path)] = path.read_text(encoding="utf-8")
    return found


def test_the_sources_name_listed_types_and_enumerators_only():
    used = sdk_names.c_names(_sources().values())
    assert {"musaStream_t", "musaErrorNotReady", "mcclDataType_t", "musaMalloc"} <= used
    assert sorted(used - _listed()) == []


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("if (status == musaErrorCollectiveTimeout) {}", "musaErrorCollectiveTimeout"),
        ("case mcclUnhandledMusaError: return 1;", "mcclUnhandledMusaError"),
        ("musaFancyProp properties; // musaMalloc", "musaFancyProp"),
        ("MUfancy_t value = MU_FANCY;", "MU_FANCY MUfancy_t"),
        ("#if MUSA_VERSION >= 1\n#endif", "MUSA_VERSION"),
    ],
)
def test_a_name_without_evidence_in_a_source_is_refused(source, refused):
    assert " ".join(sorted(sdk_names.c_names([source]) - _listed())) == refused


def test_comments_strings_and_our_macros_are_not_names_of_the_sdk():
    text = '#define MUSA_OURS(x) x\nMUSA_OURS(musaMalloc); // musaFancy\nf("musaFancy"); /* MU_FANCY */'
    assert sdk_names.c_names([text]) == {"musaMalloc"}


@pytest.mark.parametrize("line", ["musaMalloc", "musaMalloc guess", "musaMalloc call doc"])
def test_a_name_without_one_kind_of_evidence_is_refused(tmp_path, line):
    (tmp_path / "list.txt").write_text(f"# names\nmusaFree call\n{line}\n")
    with pytest.raises(ValueError, match=r"list\.txt:3: .* needs one kind of evidence"):
        sdk_names.read_list(tmp_path / "list.txt")


def test_the_list_is_sorted_without_duplicates():
    blocks = SDK_SYMBOLS.read_text(encoding="utf-8").split("\n\n")[1:]
    names = [[line for line in block.splitlines() if line and not line.startswith("#")] for block in blocks]
    assert all(block == sorted(block) for block in names)
    flat = [name for block in names for name in block]
    assert len(flat) == len(set(flat)) > 150
