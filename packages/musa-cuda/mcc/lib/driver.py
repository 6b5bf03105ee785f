# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The command line of mcc over nvcc."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

HOME = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = HOME / "lib" / "mcc" / "include"
DEFAULT_ARCH = "sm_90"
ARCHS = "MUSA_CUDA_ARCH"
# Options that take the next argument: of nvcc, and of MUSA's compiler alone.
_PAIRS = ("-o", "-MF", "-MT", "-MQ", "-L", "-l", "-I", "-isystem", "-D", "-U", "-include")
_IGNORED_PAIRS = ("-mllvm", "-Xclang", "-Xarch_device", "-MJ", "-target")
_IGNORED = re.compile(
    r"-mtgpu|-cuda_wrapper|-mathx-.*|-fmusa-.*|-fcuda-.*|-fplugin=.*|-Od3|--?(?:musa|cuda)-path=.*|--no-offload.*"
    r"|-nocuda(?:inc|lib)|-nogpu(?:inc|lib)|--target=.*|-Qunused-arguments|-Weverything|-Werror(?:=.*)?|-Wno-unknown-pragmas"
    r"|-f(?:no-)?color-diagnostics|-ferror-limit=.*|-fno-trapping-math|-fno-math-errno"
)
_ARCH = re.compile(r"--(?:offload-arch|cuda-gpu-arch)=(.*)")
_STAGES = {"-c": "compile", "-E": "preprocess", "-fatbin": "module", "--fatbin": "module"}
# Warnings of nvcc: declarations of __host__ __device__ functions that the C library has too, calls that the
# host never makes, unused variables, comparisons of unsigned numbers in templates.
_SUPPRESSED = "20011,20012,20014,20015,177,186,550,68,128,611"
# Options of GCC for the vectors of a kernel that is compiled for the host.
_REFUSED = re.compile(r"-ftree-vectorize|-fvect-cost-model=.*|--param=.*")


HELP = """usage: mcc [options] FILE...

Compiles .mu, .cu, C and C++ files for an NVIDIA GPU with nvcc, and links them.

  -o FILE               the output; otherwise a.out, or the name of the source with another suffix
  -c, -S, -E            compile to an object file, to assembly, or preprocess only
  -x LANGUAGE           musa or cuda: the sources contain kernels, whatever their suffix
  --offload-arch=mp_NN  the architecture of the GPU: mp_21, mp_22 or mp_31; may be repeated
  -fatbin               build a module for muModuleLoad
  -v, --verbose         print the commands that are run
  --version             print the version and exit
  --help                print this text and exit

Other options are those of nvcc ($MUSA_NVCC)."""


class UsageError(Exception):
    """A command line that cannot be carried out."""


def architectures(asked: list[str], environment=os.environ) -> list[str]:
    """nvcc's options for the GPUs to compile for: MUSA_CUDA_ARCH, as "sm_80,sm_90".

    The architectures of MUSA that a project names are no NVIDIA GPUs. mp_31, the newest that the SDK's
    headers know, stands for all of them, and so does the device's own, which torch.musa reports as its
    compute capability.

    Raises:
        UsageError: another architecture is requested, or MUSA_CUDA_ARCH has none of CUDA.
    """
    chosen = [name for name in re.split(r"[,;\s]+", environment.get(ARCHS, "")) if name] or [DEFAULT_ARCH]
    for name in chosen:
        if not re.fullmatch(r"sm_\d+[a-z]?", name):
            raise UsageError(f'{ARCHS} holds {name!r}. Fix: export {ARCHS}="sm_90", or several with commas')
    numbers = {re.sub(r"\D", "", name) for name in chosen}
    for name in asked:
        if name != "mp_31" and name.removeprefix("mp_") not in numbers:
            raise UsageError(
                f"this mcc compiles for an NVIDIA GPU ({', '.join(chosen)}), and {name} is requested. "
                "Fix: unset TORCH_MUSA_ARCH_LIST, or use mp_31"
            )
    if len(chosen) == 1:
        return [f"-arch={chosen[0]}"]
    return [f"-gencode=arch={name.replace('sm_', 'compute_')},code={name}" for name in chosen]


def translate(arguments: list[str], nvcc: list[str]) -> tuple[list[str], bool]:
    """nvcc's command line, and whether it is to be printed.

    Raises:
        UsageError: it cannot be carried out.
    """
    options: list[str] = []
    host: list[str] = []
    asked: list[str] = []
    verbose, kernels, stage, standard, level = False, False, "link", "-std=c++17", "-O2"
    rest = iter(arguments)
    for argument in rest:
        value = ""
        if argument in (*_PAIRS, *_IGNORED_PAIRS, "-x", "-Xarch_host", "-idirafter", "-include-pch"):
            value = next(rest, "")
            if not value:
                raise UsageError(f"{argument} needs an argument")
        if argument == "-x":
            if value == "musa-header":
                raise UsageError("this mcc precompiles no headers")
            kernels = value in ("musa", "cuda")
        elif argument in _IGNORED_PAIRS or _IGNORED.fullmatch(argument):
            continue
        elif argument == "-include-pch":
            raise UsageError("this mcc reads no precompiled headers")
        elif _REFUSED.fullmatch(argument):
            raise UsageError(f"{argument} is an option of GCC, and kernels are not compiled for the host")
        elif match := _ARCH.fullmatch(argument):
            asked.append(match[1])
        elif argument in ("-###", "-v", "--verbose"):
            verbose = True
        elif argument == "-Xarch_host":
            host.append(value)
        elif argument.startswith("-std="):
            standard = argument.replace("gnu++", "c++")
            standard = "-std=c++17" if standard in ("-std=c++11", "-std=c++14") else standard
        elif argument in ("-O0", "-O1", "-O2", "-O3"):
            level = argument
        elif argument in ("-ffast-math", "-use_fast_math", "--use_fast_math"):
            options.append("--use_fast_math")
        elif argument == "-idirafter" or argument.startswith("-idirafter"):
            host.append(f"-idirafter{value or argument.removeprefix('-idirafter')}")
        elif argument in ("-I", "-isystem") or argument.startswith(("-I", "-isystem")):
            kind = "-isystem" if argument.startswith("-isystem") else "-I"
            folder = value or argument.removeprefix(kind)
            # The host's headers of this SDK: those for nvcc take their place.
            if pathlib.Path(folder).resolve() != HOME / "include":
                options += [kind, folder]
        elif value:
            options += [argument, value]
        elif argument in _STAGES:
            stage = _STAGES[argument]
            options.append(argument.replace("--fatbin", "-fatbin"))
        elif argument in (
            "-MD",
            "-MMD",
            "-MP",
            "-shared",
            "-g",
            "-G",
            "-rdynamic",
        ) or not argument.startswith("-"):
            kernels = kernels or argument.endswith((".mu", ".cu"))
            options.append(argument)
        elif argument.startswith(("-D", "-U", "-L", "-l")):
            options.append(argument)
        elif argument.startswith("-Wl,"):
            options += [f"-Xlinker={word}" for word in argument.removeprefix("-Wl,").split(",")]
        elif argument.startswith(("-f", "-W", "-m", "-p")):
            host.append(argument)
        else:
            raise UsageError(f"{argument} is not known to this mcc")
    command = [*nvcc, *(["-x", "cu"] if kernels else []), *architectures(asked), standard, level]
    command += [
        "--extended-lambda",
        "--expt-relaxed-constexpr",
        "--cudart=shared",
        f"--diag-suppress={_SUPPRESSED}",
    ]
    command += ["-D__MUSACC__=1", "-D__MUSA__=1", "-D__MUSA_ON_CUDA__=1", f"-I{INCLUDE}"]
    # Streams and events have one type in the SDK and in CUDA. nvcc does not pass -D to its last call of the
    # host's compiler.
    command += ["-Xcompiler=-DCUstream_st=MUstream_st,-DCUevent_st=MUevent_st"]
    command += [
        "-include",
        str(INCLUDE / "musa_on_cuda.h"),
        *(f"-Xcompiler={word}" for word in host),
        *options,
    ]
    if stage == "link":
        library = HOME / "lib"
        command += [
            f"-L{library}",
            "-lmusart",
            "-lmusa",
            f"-Xlinker=-rpath={library}",
            "-Xlinker=--wrap=__cudaLaunchKernel",
        ]
    return command, verbose


def program_of(variables: tuple[str, ...], default: str) -> list[str]:
    """Returns the words of the first variable that names a program, or of the default.

    Raises:
        UsageError: if a variable has an unclosed quotation mark.
    """
    for name in variables:
        value = os.environ.get(name, "")
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise UsageError(
                f"{name}={value!r} is no command: {error}.\nFix: correct it, or unset {name}"
            ) from None
        if words:
            return words
    return shlex.split(default)


def main(arguments: list[str]) -> int:
    if not arguments or "--help" in arguments:
        print(HELP, file=sys.stdout if arguments else sys.stderr)
        if not arguments:
            print("\nmcc: error: no input files", file=sys.stderr)
        return 0 if arguments else 2
    settings = json.loads((HOME / "lib" / "mcc" / "settings.json").read_text(encoding="utf-8"))
    try:
        nvcc = program_of(("MUSA_NVCC",), settings["nvcc"])
        if compiler := program_of(("MUSA_HOST_CXX", "CXX"), ""):
            nvcc += ["-ccbin", compiler[0]]
        if arguments == ["--version"]:
            done = subprocess.run([*nvcc, "--version"], stdout=subprocess.PIPE, text=True, check=False)
            found = re.search(r"V([\d.]+)", done.stdout)
            print(f"the compiler mcc of musa-cuda, over nvcc {found[1] if found else 'of unknown version'}")
            print(done.stdout, end="")
            return done.returncode
        command, verbose = translate(arguments, nvcc)
    except UsageError as error:
        print(f"mcc: error: {error}", file=sys.stderr)
        return 1
    if verbose:
        print(shlex.join(command), file=sys.stderr)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
