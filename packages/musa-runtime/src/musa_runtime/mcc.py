# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Architectures and options that a MUSA compiler accepts for kernels.

Every result comes from the compiler itself, which is run on an empty file: the vendor's mcc is based on
clang, the emulator's on the host's C++ compiler, and neither version numbers nor the host's compiler
distinguish them.

Also a script, for CMake: `python mcc.py MCC archs`, `python mcc.py MCC accepted FLAG...` and
`python mcc.py MCC precompiles FLAG...` print lists for CMake. Hence standard library only, and no relative
import. `python -m musa_runtime.mcc MCC check` tests the features that packs need, for a compiler with which
they were never built.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_HERE = os.path.dirname(os.path.abspath(__file__))
if not __package__ and sys.path and os.path.abspath(sys.path[0]) == _HERE:
    # When run from the source folder, its modules would hide those of the standard library.
    del sys.path[0]

import re  # noqa: E402 - after the change of sys.path
import subprocess  # noqa: E402
import tempfile  # noqa: E402

ARCH_LIST = "TORCH_MUSA_ARCH_LIST"
# Architectures of products, oldest first: MTT S80 and S3000, S4000, S5000.
KNOWN_ARCHS = ("21", "22", "31")


class CompilerError(RuntimeError):
    """mcc cannot be run, or it accepts nothing; the message has the fix."""


def parse_archs(text: str) -> list[str]:
    """The architectures in a list such as `"22;31"`, `"2.2 3.1"` or `"mp_22,mp_31"`, as `["22", "31"]`.

    Raises:
        ValueError: an entry is not an architecture of MUSA.
    """
    archs = []
    for entry in filter(None, re.split(r"[;,\s]+", text)):
        match = re.fullmatch(r"(?:mp_)?(\d)\.?(\d)", entry)
        if match is None:
            raise ValueError(
                f"{ARCH_LIST} holds {entry!r}, which is not an architecture of MUSA.\n"
                "Likely cause: the name of a CUDA architecture, such as sm_80 or 8.0+PTX.\n"
                f'Fix: export {ARCH_LIST}="22;31", or unset {ARCH_LIST}'
            )
        arch = "".join(match.groups())
        if arch not in archs:
            archs.append(arch)
    return archs


# The features that kernels with torch's headers need, each as a small file: name, source, fix.
TRIALS = (
    (
        "C++20",
        "template <typename T> concept Small = sizeof(T) < 8;\n"
        "template <Small T> __global__ void kernel(T* x) { x[0] = T{}; }\n"
        "void launch(int* x) { kernel<<<1, 1>>>(x); }\n",
        "torch 2.13's headers need C++20: update the SDK",
    ),
    (
        # clang 14 crashes here in CUDA's mode with C++20, and mcc of SDK 4 is based on clang 14.
        "implicit members of classes with containers",
        "#include <memory>\n#include <utility>\n#include <vector>\n"
        "struct Guard { virtual ~Guard() = default; };\n"
        "struct Block { unsigned long size = 0; std::shared_ptr<Guard> guard; };\n"
        "struct State {\n"
        "  std::pair<unsigned long, unsigned long> id = {0, 0};\n"
        "  std::vector<Block> blocks;\n  std::shared_ptr<Guard> guard;\n};\n"
        "void use() { State state; (void)state; }\n",
        "update the SDK; until then use the packs that need no mcc: musa-runtime, musa-ops-mudnn",
    ),
    (
        # As torch's macros declare it if NDEBUG is defined.
        "assertions in kernels",
        "#include <cassert>\n"
        'extern "C" {\n'
        "#ifdef __MUSA_ARCH__\n__host__ __device__\n#endif\n"
        "void __assert_fail(const char*, const char*, unsigned int, const char*) noexcept"
        " __attribute__((__noreturn__));\n}\n"
        '__global__ void kernel(int x) { if (x < 0) __assert_fail("x", "f", 1, "k"); }\n'
        "void launch() { kernel<<<1, 1>>>(1); }\n",
        'export CXXFLAGS="$CXXFLAGS -UNDEBUG", so that torch leaves the declaration to the SDK',
    ),
    (
        "device functions of <cmath>",
        "#include <cmath>\n"
        "__global__ void kernel(float* x) { x[0] = std::exp(x[0]) + std::log1p(x[1]) + sinf(x[2]); }\n"
        "void launch(float* x) { kernel<<<1, 1>>>(x); }\n",
        "update the SDK",
    ),
    (
        "lambdas of kernels",
        "template <typename F> __global__ void kernel(int* x, F f) { x[0] = f(x[0]); }\n"
        "void launch(int* x) {\n"
        "  kernel<<<1, 1>>>(x, [] __device__(int y) { return y + 1; });\n"
        "  auto both = [] __host__ __device__(int y) { return y + 1; };\n"
        "  kernel<<<1, 1>>>(x, both);\n  (void)both(1);\n}\n",
        "update the SDK",
    ),
)


def accepts(mcc: str, options: Sequence[str]) -> bool:
    """Whether `mcc` compiles an empty file with these options and without a warning.

    Raises:
        CompilerError: `mcc` cannot be run.
    """
    return _compile(mcc, ["-Werror", *options], "__global__ void empty() {}\n").returncode == 0


def precompiles(mcc: str, options: Sequence[str]) -> bool:
    """Whether `mcc` precompiles a header for sources with these options: `-x musa-header` and `-include-pch`.

    Files that the options include are left out: the build may not have created them yet.

    Raises:
        CompilerError: `mcc` cannot be run.
    """
    options = ["-Werror", *_without_includes(options)]
    with tempfile.TemporaryDirectory(prefix="mcc-probe-") as folder:
        header, precompiled = os.path.join(folder, "probe.h"), os.path.join(folder, "probe.gch")
        with open(header, "w", encoding="utf-8") as file:
            file.write("#pragma once\ntemplate <typename T> T twice(T x) { return x + x; }\n")
        if _run([mcc, "-x", "musa-header", *options, header, "-o", precompiled]).returncode != 0:
            return False
        source = "__global__ void kernel(int* x) { x[0] = twice(x[0]); }\n"
        return _compile(mcc, [*options, "-include-pch", precompiled], source).returncode == 0


def _without_includes(options: Sequence[str]) -> list[str]:
    pairs = zip(["", *options], options)
    return [option for before, option in pairs if "-include" not in (before, option)]


def _compile(mcc: str, options: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory(prefix="mcc-probe-") as folder:
        source = os.path.join(folder, "probe.mu")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        return _run([mcc, "-x", "musa", *options, "-c", source, "-o", os.path.join(folder, "probe.o")])


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise CompilerError(
            f"the MUSA compiler {command[0]} cannot be run: {error}\n"
            "Likely causes: it is not installed; PYTORCH_MCC or MUSA_HOME names another place.\n"
            "Fix: install the SDK's compiler, or export PYTORCH_MCC=<path of mcc>"
        ) from error


def accepted(mcc: str, options: Sequence[str]) -> list[str]:
    """The options that `mcc` accepts, in their order. Each must be one word."""
    if not options or accepts(mcc, options):
        return list(options)
    return [option for option in options if accepts(mcc, [option])]


def supported_archs(mcc: str) -> list[str]:
    """The known architectures that `mcc` compiles for, oldest first.

    Raises:
        CompilerError: it compiles for none of them.
    """
    flags = {f"--offload-arch=mp_{arch}": arch for arch in KNOWN_ARCHS}
    found = [flags[flag] for flag in accepted(mcc, list(flags))]
    if not found:
        known = ", ".join(f"mp_{arch}" for arch in KNOWN_ARCHS)
        raise CompilerError(
            f"the MUSA compiler {mcc} compiles for none of {known}.\n"
            "Likely causes: it is another program; the SDK is incomplete, or newer than these.\n"
            f'Fix: mcc --version; export {ARCH_LIST}="<architecture of the device>", for example "31"'
        )
    return found


def archs(mcc: str, devices: Iterable[str] = (), environment: Mapping[str, str] = os.environ) -> list[str]:
    """The architectures to compile for: `TORCH_MUSA_ARCH_LIST`, otherwise those of `devices`, otherwise all
    that `mcc` supports.

    Args:
        mcc (str): path of the compiler.
        devices (iterable of str): architectures of the devices present, such as `"31"`.
        environment (mapping): read for `TORCH_MUSA_ARCH_LIST`.

    Raises:
        ValueError: `TORCH_MUSA_ARCH_LIST` is malformed.
        CompilerError: `mcc` cannot be run, or it compiles for no known architecture.
    """
    chosen = parse_archs(environment.get(ARCH_LIST, "")) or sorted(set(devices))
    return chosen or supported_archs(mcc)


def offload_flags(
    mcc: str, devices: Iterable[str] = (), environment: Mapping[str, str] = os.environ
) -> list[str]:
    """`--offload-arch=mp_NN` for each architecture of `archs`, with the same arguments and errors."""
    return [f"--offload-arch=mp_{arch}" for arch in archs(mcc, devices, environment)]


def check(mcc: str, environment: Mapping[str, str] = os.environ) -> int:
    """Compiles each of TRIALS for the architectures of `archs`, and prints a line for each.

    Returns the number of failures. Raises the errors of `archs`.
    """
    flags = ["-std=c++20", "-U__CUDA__", "-DNDEBUG", *offload_flags(mcc, (), environment)]
    failed = 0
    for name, text, remedy in TRIALS:
        done = _compile(mcc, flags, text)
        if done.returncode == 0:
            print(f"{name}: compiles")
            continue
        failed += 1
        first = next((line for line in done.stderr.splitlines() if "error" in line), "no message")
        print(f"{name}: fails with status {done.returncode}: {first.strip()}\nFix: {remedy}")
    return failed


def main(arguments: Sequence[str]) -> int:
    mcc, question, *options = arguments
    try:
        if question == "check":
            return int(check(mcc) != 0)
        if question == "archs":
            answer = archs(mcc)
        elif question == "accepted":
            answer = accepted(mcc, options)
        elif question == "precompiles":
            answer = ["yes" if precompiles(mcc, options) else "no"]
        else:
            raise ValueError(f"{question} is not one of archs, accepted, precompiles, check")
    except (CompilerError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(";".join(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
