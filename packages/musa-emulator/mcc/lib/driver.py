# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Translates mcc's command line to that of the host's C++ compiler."""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import refusals
import rewrite
import two_pass

HOME = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = HOME / "lib" / "mcc" / "include"
KERNEL_SUFFIXES = {".mu", ".cu"}
SOURCE_SUFFIXES = {".c", ".cc", ".cpp", ".cxx", ".C", *KERNEL_SUFFIXES}
DEFAULT_ARCH = 31

# Options that take the next argument, by the stage that uses them.
_FOR_COMPILING = (
    *["-D", "-U", "-I", "-F", "-A", "-isystem", "-iquote", "-idirafter", "-include", "-imacros", "-iprefix"],
    *[
        "-iwithprefix",
        "-iwithprefixbefore",
        "-isysroot",
        "-imultilib",
        "-MF",
        "-MT",
        "-MQ",
        "--param",
        "-aux-info",
    ],
    *["-Xpreprocessor", "-Xassembler"],
)
_FOLDERS = ("-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros")
_FOR_LINKING = ("-L", "-l", "-Xlinker", "-T", "-u", "-z", "-e")
_IGNORED_PAIRS = (
    *[
        "-mllvm",
        "-Xclang",
        "-Xarch_device",
        "-Xcuda-ptxas",
        "-Xcuda-fatbinary",
        "-Xopenmp-target",
        "-MJ",
        "-target",
    ],
    *["-arch", "-mthread-model", "-dependency-file", "-ivfsoverlay"],
)
_PAIRS = ("-o", "-x", "-Xarch_host", "-include-pch", *_FOR_COMPILING, *_FOR_LINKING, *_IGNORED_PAIRS)
# Options of the GPU's compiler that have no effect here.
_IGNORED = re.compile(
    r"-mtgpu|-cuda_wrapper|-mathx-.*|-fmusa-.*|-fcuda-.*|--?use_fast_math|-fplugin=.*|-f(?:no-)?gpu-rdc|-rdc|-dc|-Od3"
    r"|--(?:musa|cuda)-path=.*|--no-offload.*|-nocuda(?:inc|lib)|-nogpu(?:inc|lib)|--target=.*|-Qunused-arguments"
    r"|-Weverything|-stdlib=libstdc\+\+|-f(?:no-)?integrated-as|-fansi-escape-codes|-fuse-cuid=.*"
)
# Options that clang spells differently than the host's compiler.
_RENAMED = (
    (
        re.compile(r"-f(no-)?color-diagnostics"),
        lambda m: f"-fdiagnostics-color={'never' if m[1] else 'always'}",
    ),
    (re.compile(r"-ferror-limit=(\d+)"), lambda m: f"-fmax-errors={m[1]}"),
    # The kernel headers need C++14, which also accepts C++11 sources.
    (re.compile(r"-std=(c|gnu)\+\+(?:11|0x|1y)"), lambda m: f"-std={m[1]}++14"),
)
# Produce a module for the driver's muModuleLoad: here a shared library with the kernels.
_MODULE = ("-fatbin", "--fatbin", "--cuda-device-only", "--musa-device-only")
_GPU_ALONE = ("-ptx", "-dlink")
_ARCH = re.compile(r"--(?:offload-arch|cuda-gpu-arch)=(.*)")


HELP = """usage: mcc [options] FILE...

Compiles .mu and .cu files for the emulated device, and C and C++ files, and links them.

  -o FILE               the output; otherwise a.out, or the name of the source with another suffix
  -c, -S, -E            compile to an object file, to assembly, or preprocess only
  -x LANGUAGE           musa or cuda: the sources contain kernels, whatever their suffix
  --offload-arch=mp_NN  the architecture of the GPU: mp_21, mp_22 or mp_31; may be repeated
  -fatbin               build a module for muModuleLoad
  --two-pass            check kernels with the host and the device pass of clang first
  -v, --verbose         print the commands that are run
  --version             print the version and exit
  --help                print this text and exit

Other options are those of the host's compiler ($MUSA_HOST_CXX, else $CXX, else c++)."""


class UsageError(Exception):
    """An invalid command line."""


@dataclass
class Command:
    """The parsed command line."""

    sources: list[tuple[str, bool]] = field(default_factory=list)  # path, and whether it contains kernels
    options: list[str] = field(default_factory=list)  # for the host's compiler
    linking: list[str] = field(default_factory=list)
    output: str | None = None
    stage: str = "link"
    archs: list[int] = field(default_factory=list)
    verbose: bool = False
    two_pass: bool = False  # run clang's passes first
    module: bool = False  # build a module for muModuleLoad
    header: str | None = None  # the header to precompile
    precompiled: pathlib.Path | None = None  # a precompiled header to include first


def parse(arguments: list[str]) -> Command:
    command = Command()
    language = None
    rest = iter(arguments)
    for argument in rest:
        paired = argument in _PAIRS
        value = next(rest, None) if paired else None
        if paired and value is None:
            raise UsageError(f"{argument} needs an argument")
        if argument == "-o":
            command.output = value
        elif argument == "-x":
            language = value
        elif argument in _IGNORED_PAIRS or _IGNORED.fullmatch(argument):
            continue
        elif argument == "-include-pch":
            command.precompiled = pathlib.Path(value)
        elif argument == "-Xarch_host":
            command.options.append(value)
        elif match := _ARCH.fullmatch(argument):
            command.archs.append(_arch(match.group(1)))
        elif argument == "--two-pass":
            command.two_pass = True
        elif argument in _MODULE:
            command.module = True
        elif argument in _GPU_ALONE:
            raise UsageError(
                f"{argument} produces only GPU code, which the emulated device does not have: "
                "kernels are compiled into the host's object file. Fix: remove the option"
            )
        elif argument in ("-c", "-S", "-E"):
            command.stage = {"-c": "compile", "-S": "assemble", "-E": "preprocess"}[argument]
        elif argument in ("-###", "-v", "--verbose"):
            command.verbose = True
        elif argument == "--version":
            done = subprocess.run([*compiler(), "--version"], stdout=subprocess.PIPE, check=False)
            print(
                f"the compiler mcc of musa-emulator, based on {done.stdout.decode(errors='replace')}", end=""
            )
            sys.exit(done.returncode)
        elif paired:
            of_stage = command.linking if argument in _FOR_LINKING else command.options
            of_stage.extend([argument, relative(value) if argument in _FOLDERS else value])
        elif argument.startswith(("-L", "-l", "-Wl,")) or argument in (
            "-shared",
            "-static",
            "-pie",
            "-no-pie",
            "-rdynamic",
        ):
            command.linking.append(argument)
        elif argument.startswith("-") and argument != "-":
            command.options.append(relative(_renamed(argument)))
        elif language == "musa-header":
            command.header = argument
        elif pathlib.Path(argument).suffix in SOURCE_SUFFIXES or language not in (None, "none"):
            kernels = language in ("musa", "cuda") or (
                language is None and pathlib.Path(argument).suffix in KERNEL_SUFFIXES
            )
            command.sources.append((argument, kernels))
        else:
            command.linking.append(argument)
    if command.header is not None:
        if command.sources or command.output is None or not command.output.endswith(".gch"):
            raise UsageError("-x musa-header needs exactly one header, and -o with a name that ends in .gch")
        return command
    if command.precompiled is not None and not command.precompiled.is_file():
        raise UsageError(f"-include-pch {command.precompiled}: no such file")
    if not command.sources and not command.linking:
        raise UsageError("no input files")
    if command.module and command.stage in ("link", "compile"):
        command.stage = "link"
        command.options.append("-fPIC")
        command.linking.append("-shared")
        if command.output is None and command.sources:
            command.output = pathlib.Path(command.sources[0][0]).stem + ".fatbin"
    if command.output is not None and command.stage != "link" and len(command.sources) > 1:
        raise UsageError("-o names one file, but there are several sources. Fix: compile them one by one")
    return command


def _renamed(option: str) -> str:
    for pattern, replacement in _RENAMED:
        if match := pattern.fullmatch(option):
            return replacement(match)
    return option


def _arch(name: str) -> int:
    match = re.fullmatch(r"mp_(\d\d)", name)
    if match is None:
        raise UsageError(f"{name} is not a MUSA architecture: expected mp_21, mp_22 or mp_31")
    return int(match.group(1))


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


def compiler() -> list[str]:
    return program_of(("MUSA_HOST_CXX", "CXX"), "c++")


def c_compiler() -> list[str]:
    return program_of(("MUSA_HOST_CC", "CC"), "cc")


def caching_compiler() -> list[str]:
    """The C++ compiler behind the launcher that CMake takes from the environment, e.g. ccache.

    What it compiles is preprocessed here, so that ccache needs no directory of this build: see `relative`.
    """
    return [*program_of(("CMAKE_CXX_COMPILER_LAUNCHER",), ""), *compiler()]


def preprocessor() -> list[str]:
    """The C++ compiler, with the option without which GCC writes full paths of system headers."""
    return [*compiler(), *(("-fno-canonical-system-headers",) if os.environ.get("CCACHE_BASEDIR") else ())]


_WITH_FOLDER = re.compile(r"(-I|-isystem|-iquote|-idirafter)?(/.+)")


def relative(option: str) -> str:
    """Returns an option with its path relative to the working folder, if the path is below CCACHE_BASEDIR.

    As ccache does with the command lines of C++ sources: another clone then has the same preprocessed text.
    """
    base, match = os.environ.get("CCACHE_BASEDIR"), _WITH_FOLDER.fullmatch(option)
    if not base or match is None or not pathlib.Path(match[2]).is_relative_to(base):
        return option
    return (match[1] or "") + os.path.relpath(match[2])


def run(command: list[str], verbose: bool) -> int:
    if verbose:
        print(shlex.join(command), file=sys.stderr)
    return subprocess.run(command, check=False).returncode


def definitions(command: Command) -> list[str]:
    arch = max(command.archs, default=DEFAULT_ARCH)
    return [
        "-D__MUSACC__=1",
        "-D__MUSA__=1",
        f"-D__MUSA_ARCH__={arch * 10}",
        relative(f"-I{INCLUDE}"),
        relative(f"-isystem{HOME / 'include'}"),
        *(() if any(option.startswith("-std=") for option in command.options) else ("-std=c++17",)),
    ]


DEVICE_HEADER = INCLUDE / "simt" / "device.h"


# As on a GPU, no errno and no floating-point traps, so that loops with math functions can be vectorized.
AS_A_GPU_COMPUTES = ("-fno-math-errno", "-fno-trapping-math")
# SSE4.1, which all processors since 2009 have but compilers do not assume, rounds and selects in one
# instruction, as a GPU does. On aarch64, compilers would fuse multiply-adds, and kernels would give other
# results than on x86-64.
HOST_INSTRUCTIONS = {"x86_64": ("-march=x86-64-v2",), "aarch64": ("-ffp-contract=off",)}


@functools.cache
def target_machine() -> str:
    """The target processor of the host's compiler, e.g. "x86_64"; it may be a cross compiler."""
    command = [*compiler(), "-dumpmachine"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.partition("-")[0]


def host_instructions(options: list[str]) -> tuple[str, ...]:
    chosen = any(option.startswith(("-march=", "-m32")) for option in options)
    return () if chosen else HOST_INSTRUCTIONS.get(target_machine(), ())


def code_generation(options: list[str]) -> tuple[str, ...]:
    return (
        *AS_A_GPU_COMPUTES,
        *host_instructions(options),
        "-fno-semantic-interposition",
        "-Wno-unknown-pragmas",
        "-Wno-attributes",
    )


def compile_kernels(command: Command, source: str, output: str, folder: pathlib.Path, flag: str) -> int:
    """Preprocesses, rewrites and compiles; with --two-pass, after clang's passes."""
    if command.two_pass:
        arch = max(command.archs, default=DEFAULT_ARCH)
        headers = two_pass.Headers(INCLUDE / "two_pass", HOME / "include")
        refused = two_pass.check(source, command.options, arch, headers, command.verbose)
        for name, messages in refused.items():
            print(f"{source}: refused by the {name} pass of a two-pass compiler:", file=sys.stderr)
            print(messages, file=sys.stderr)
        if refused:
            return 1
        if "-fsyntax-only" in command.options:
            return 0
    if pathlib.Path(source).is_file():
        text = pathlib.Path(source).read_text(encoding="utf-8", errors="surrogateescape")
        if found := refusals.check(text, source):
            print("\n".join(found), file=sys.stderr)
            return 1
    preprocessed = folder / "preprocessed.ii"
    rewritten = folder / "rewritten.ii"
    first = ["-include", relative(str(DEVICE_HEADER))]
    if command.precompiled is not None:
        check_options(command)
        # The preprocessor emits a line that refers to the precompiled header, instead of its text.
        header = relative(str(command.precompiled.with_suffix("")))
        first = ["-include", header, "-fpch-preprocess", "-Winvalid-pch"]
        first += code_generation(command.options)
    status = run(
        [
            *preprocessor(),
            *definitions(command),
            *first,
            *command.options,
            "-x",
            "c++",
            "-E",
            relative(source),
            "-o",
            str(preprocessed),
        ],
        command.verbose,
    )
    if status != 0:
        return status
    if command.precompiled is not None:
        add_dependency(command.options, command.precompiled)
    text = rewrite.rewrite(preprocessed.read_text(encoding="utf-8", errors="surrogateescape"))
    rewritten.write_text(text, encoding="utf-8", errors="surrogateescape")
    if command.stage == "preprocess":
        sys.stdout.write(text) if command.output is None else pathlib.Path(output).write_text(text)
        return 0
    # The preprocessor has written the dependencies.
    options = _without_dependencies(command.options)
    standard = [] if any(option.startswith("-std=") for option in options) else ["-std=c++17"]
    compile_it = [
        *caching_compiler(), *code_generation(options), *options, *standard,
        "-fpreprocessed", "-x", "c++-cpp-output", flag, str(rewritten), "-o", output,
    ]  # fmt: skip
    return run_as_clang(compile_it, command.verbose)


def options_file(precompiled: pathlib.Path) -> pathlib.Path:
    return precompiled.with_suffix(".options")


def relevant_options(command: Command) -> list[str]:
    return [*definitions(command), *_without_dependencies(command.options)]


def check_options(command: Command) -> None:
    """Raises UsageError if options differ from the header's: another optimization level crashes GCC."""
    record = options_file(command.precompiled)
    made_with = record.read_text(encoding="utf-8").splitlines() if record.is_file() else []
    options = relevant_options(command)
    if options != made_with:
        more = [option for option in options if option not in made_with]
        fewer = [option for option in made_with if option not in options]
        raise UsageError(
            f"-include-pch {command.precompiled}: it was compiled with other options, or in another order "
            f"(only here: {shlex.join(more) or 'none'}; only there: {shlex.join(fewer) or 'none'}).\n"
            "Fix: precompile it again (mcc -x musa-header) with the options of the sources"
        )


def add_dependency(options: list[str], precompiled: pathlib.Path) -> None:
    """Adds the precompiled header to the dependency file, because the preprocessor omits it."""
    if "-MF" in options:
        path = pathlib.Path(options[options.index("-MF") + 1])
        text = path.read_text(encoding="utf-8", errors="surrogateescape").rstrip("\n")
        path.write_text(f"{text} \\\n {precompiled}\n", encoding="utf-8", errors="surrogateescape")


def precompile(command: Command, folder: pathlib.Path) -> int:
    """Precompiles the header to `output`, and writes a file next to it with the same name without .gch.

    GCC finds the precompiled header by that name. The header is not rewritten, so it must not contain
    anything that mcc rewrites.
    """
    output = pathlib.Path(command.output)
    wrapper = output.with_suffix("")
    included = [DEVICE_HEADER, pathlib.Path(command.header).resolve()]
    if os.environ.get("CCACHE_BASEDIR"):
        included = [os.path.relpath(header, wrapper.resolve().parent) for header in included]
    wrapper.write_text("".join(f'#include "{header}"\n' for header in included))
    wrapper = relative(str(wrapper))
    preprocessed = folder / "preprocessed.ii"
    options = [*definitions(command), "-include", relative(str(DEVICE_HEADER)), *command.options]
    as_header = [*caching_compiler(), *code_generation(command.options), *_without_dependencies(options)]
    status = run(
        [*preprocessor(), *options, "-fpch-preprocess", "-x", "c++", "-E", wrapper, "-o", str(preprocessed)],
        command.verbose,
    )
    if status != 0:
        return status
    text = preprocessed.read_text(encoding="utf-8", errors="surrogateescape")
    line = next(
        (old for old, new in zip(text.splitlines(), rewrite.rewrite(text).splitlines()) if old != new), None
    )
    if line is not None:
        print(
            f"mcc: error: {command.header} cannot be precompiled: it contains code that mcc must rewrite:\n"
            f"  {line.strip()[:200]}\n"
            "Likely causes: a kernel, a launch or shared memory in one of the headers that it includes.\n"
            "Fix: include that header in the sources instead",
            file=sys.stderr,
        )
        return 1
    options_file(output).write_text("\n".join(relevant_options(command)), encoding="utf-8")
    # ccache hashes this instead of the precompiled header (CCACHE_PCH_EXTSUM), which differs from run to run.
    digest = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
    output.with_name(f"{output.name}.sum").write_text(digest, encoding="utf-8")
    return run([*as_header, "-x", "c++-header", wrapper, "-o", str(output)], command.verbose)


_ERROR = re.compile(r"^.*\berror: .*$", re.MULTILINE)


def run_as_clang(command: list[str], verbose: bool) -> int:
    """Runs the host's compiler. Runs it again if all errors are about names that change meaning in a class.

    The standard requires no diagnostic for these; GCC rejects them, clang and the GPU's compiler accept
    them. GCC 12 can accept them only with -fpermissive, which accepts much more, so that option is used
    only if there are no other errors.
    """
    if verbose:
        print(shlex.join(command), file=sys.stderr)
    colors = ["-fdiagnostics-color=always"] if sys.stderr.isatty() else []
    done = subprocess.run([*command, *colors], stderr=subprocess.PIPE, check=False)
    told = done.stderr.decode(errors="replace")
    errors = _ERROR.findall(re.sub(r"\x1b\[[\d;]*[mK]", "", told))
    if done.returncode != 0 and errors and all("changes meaning of" in error for error in errors):
        return run([*command, "-fpermissive", "-w"], verbose)
    sys.stderr.write(told)
    return done.returncode


def _without_dependencies(options: list[str]) -> list[str]:
    kept = []
    rest = iter(options)
    for option in rest:
        if option in ("-MD", "-MMD", "-MP"):
            continue
        if option in ("-MF", "-MT", "-MQ"):
            next(rest)
            continue
        kept.append(option)
    return kept


def execute(command: Command) -> int:
    with tempfile.TemporaryDirectory(prefix="mcc-") as name:
        folder = pathlib.Path(name)
        if command.header is not None:
            return precompile(command, folder)
        objects = []
        flag = "-S" if command.stage == "assemble" else "-c"
        for number, (source, kernels) in enumerate(command.sources):
            stem = pathlib.Path(source).stem
            suffix = pathlib.Path(source).suffix
            if command.stage == "link":
                output = str(folder / f"{number}-{stem}.o")
            else:
                output = (
                    command.output
                    or stem + {"compile": ".o", "assemble": ".s", "preprocess": ".ii"}[command.stage]
                )
            if kernels:
                own = folder / str(number)
                own.mkdir()
                status = compile_kernels(command, source, output, own, flag)
            else:
                stage = {"preprocess": ["-E"]}.get(command.stage, [flag])
                include = ["-isystem" + str(HOME / "include")]
                of_language = c_compiler() if suffix == ".c" else compiler()
                to = ["-o", output] if command.stage != "preprocess" or command.output else []
                status = run([*of_language, *command.options, *include, *stage, source, *to], command.verbose)
            if status != 0:
                return status
            objects.append(output)
        if command.stage != "link" or "-fsyntax-only" in command.options:
            return 0
        library = HOME / "lib"
        return run(
            [
                *compiler(), *_without_dependencies(command.options), *objects, *command.linking,
                f"-L{library}", "-lmusart", "-lmusa", f"-Wl,-rpath,{library}",
                "-o", command.output or "a.out",
            ],
            command.verbose,
        )  # fmt: skip


def main(arguments: list[str]) -> int:
    if not arguments or "--help" in arguments:
        print(HELP, file=sys.stdout if arguments else sys.stderr)
        if not arguments:
            print("\nmcc: error: no input files", file=sys.stderr)
        return 0 if arguments else 2
    try:
        return execute(parse(arguments))
    except (UsageError, two_pass.ClangMissingError) as error:
        print(f"mcc: error: {error}", file=sys.stderr)
    except rewrite.SourceError as error:
        print(error, file=sys.stderr)
    except FileNotFoundError as error:
        if error.filename not in (compiler()[0], c_compiler()[0]):
            raise
        language, variable = ("C++", "CXX") if error.filename == compiler()[0] else ("C", "CC")
        print(
            f"mcc: error: the {language} compiler {error.filename} was not found.\n"
            f"Likely causes: it is not installed, or {variable} or MUSA_HOST_{variable} is wrong.\n"
            "Fix: apt-get install --yes g++",
            file=sys.stderr,
        )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
