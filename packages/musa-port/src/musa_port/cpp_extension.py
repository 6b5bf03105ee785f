# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds extensions in C++ and MUSA, with the interface of `torch.utils.cpp_extension`.

In a setup.py::

    from setuptools import setup
    from torch_musa.utils.cpp_extension import BuildExtension, MUSAExtension

    setup(
        name="my_ops",
        ext_modules=[MUSAExtension("my_ops", ["ops.cpp", "kernels.mu"])],
        cmdclass={"build_ext": BuildExtension},
    )

Or at run time::

    ops = torch_musa.utils.cpp_extension.load("my_ops", ["ops.cpp", "kernels.mu"])

CUDA sources (`.cu`, and C++ that uses CUDA names) are ported into the build folder first; the originals are
not modified. Extensions are not specialized for the building machine (no `-march=native`), so they run on
other machines. Kernels are compiled for the architectures in `TORCH_MUSA_ARCH_LIST` (such as `"22;31"`),
else for those of the present devices, else for all that mcc supports. For mcc, torch's headers that test for
CUDA's compiler are ported into the build folder, which comes first on the include path.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import setuptools
import torch
from setuptools.command.build_ext import build_ext
from torch.utils import cpp_extension as of_torch
from torch.utils.file_baton import FileBaton

from musa_runtime import device, mcc, switches
from musa_runtime.initialization import lazy_init

from . import (
    _ninja,
    include_dir,
    overlay_dir,
    port_folder,
    port_macros,
    port_sources,
    port_torch_headers,
    prelude,
)
from .options import of_nvcc, raised

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


def _cuda_home() -> str | None:
    """Returns the folder with `bin/nvcc`, which prints a version, or None if there is no MUSA compiler."""
    from musa_runtime import config

    try:
        compiler = os.environ.get("PYTORCH_MCC") or os.path.join(config.musa_home(), "bin", "mcc")
    except RuntimeError:
        return None
    return str(Path(__file__).parent / "cuda_home") if os.path.exists(compiler) else None


# Attributes of torch's module that a setup.py for CUDA uses.
CUDA_HOME = _cuda_home()
CUDNN_HOME = None
ROCM_HOME = HIP_HOME = SYCL_HOME = None
IS_HIP_EXTENSION = False

# Not by torch's include_paths() and library_paths(), which programs such as torchada replace by functions
# that call ours.
_TORCH = Path(torch.__file__).parent

KERNEL_SUFFIXES = (".mu",)
CUDA_SUFFIXES = (".cu",)
FORCE_MCC = "force_mcc"  # the vendor's option; not passed to a compiler
_CUDA_NAMES = re.compile(
    r"c10/cuda|ATen/cuda|cuda_runtime|cuda\.h|__global__|at::cuda|c10::cuda|cudaStream_t|is_cuda\("
)


def MUSAExtension(
    name: str, sources: Sequence[str | os.PathLike[str]], *args: Any, **kwargs: Any
) -> setuptools.Extension:
    """Returns an extension module with kernels, to be built by this module's `BuildExtension`.

    Args:
        name (str): dotted name of the module.
        sources (list of str): .cpp, .mu and .cu files.
        extra_compile_args (list of str, or dict): options of both compilers, or of each:
            `{"cxx": [...], "mcc": [...]}`. `"nvcc"` means `"mcc"`. With `"force_mcc"` among those of
            `"cxx"`, mcc compiles the C++ sources too, with the options of both.
        kwargs: passed to `setuptools.Extension`.
    """
    return _extension(name, sources, args, kwargs, with_musa=True)


# A setup.py for CUDA only changes the module that it imports, so the class keeps its name.
CUDAExtension = MUSAExtension


def CppExtension(
    name: str, sources: Sequence[str | os.PathLike[str]], *args: Any, **kwargs: Any
) -> setuptools.Extension:
    """Returns an extension module without kernels: neither ported nor linked with musa."""
    return _extension(name, sources, args, kwargs, with_musa=False)


def _extension(
    name: str,
    sources: Sequence[str | os.PathLike[str]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    with_musa: bool,
) -> setuptools.Extension:
    for folders in ("include_dirs", "library_dirs"):
        if folders in kwargs:
            kwargs[folders] = [os.fspath(folder) for folder in kwargs[folders]]
    extension = setuptools.Extension(name, [os.fspath(source) for source in sources], *args, **kwargs)
    extension.language = "c++"
    extension.with_musa = with_musa
    return extension


@dataclass(frozen=True)
class InstalledHeaders:
    """Headers in a wheel that extensions are built with, such as those of musa-compat.

    An extension has them in its attribute `installed_headers`.

    Attributes:
        folders (list of str): include folders, which are not ported with those of the extension.
        torch (Path): torch's CUDA headers, written by `musa_port.port_torch_headers`. Otherwise each build
            ports them.
    """

    folders: list[str]
    torch: Path


class BuildExtension(build_ext):
    """Builds `MUSAExtension` and `CppExtension` with ninja, and other extensions with setuptools."""

    def __init__(
        self, *args: Any, no_python_abi_suffix: bool = False, use_ninja: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.no_python_abi_suffix = no_python_abi_suffix
        self.use_ninja = use_ninja  # accepted for compatibility with torch; ninja is always used

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """Returns a subclass for `cmdclass` with these constructor options, as torch's method does."""

        class WithOptions(cls):  # type: ignore[misc, valid-type]
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **{**kwargs, **options})

        return WithOptions

    def get_ext_filename(self, fullname: str) -> str:
        """Returns the library's file name: `<name>.so` with `no_python_abi_suffix`."""
        path = Path(super().get_ext_filename(fullname))
        if self.no_python_abi_suffix:
            path = path.with_name(path.name.split(".")[0] + path.suffix)
        return str(path)

    def build_extension(self, ext: Any) -> None:
        if not hasattr(ext, "with_musa"):
            if any(str(source).endswith((*KERNEL_SUFFIXES, *CUDA_SUFFIXES)) for source in ext.sources):
                raise RuntimeError(f"{ext.name} has kernels. Fix: declare it as a MUSAExtension")
            super().build_extension(ext)
            return
        target = Path(self.get_ext_fullpath(ext.name)).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        options = ext.extra_compile_args or []
        if not isinstance(options, dict):
            options = {"cxx": options, "mcc": options}
        macros = [f"-D{key}" if value is None else f"-D{key}={value}" for key, value in ext.define_macros]
        macros += [f"-U{key}" for key in ext.undef_macros]
        recipe = _Recipe(
            name=ext.name.rsplit(".", 1)[-1],
            sources=[Path(source).resolve() for source in ext.sources],
            folder=Path(self.build_temp).resolve() / ext.name,
            target=target,
            include_paths=[Path(path).resolve() for path in ext.include_dirs],
            cflags=[*macros, *options.get("cxx", [])],
            musa_cflags=[*macros, *options.get("mcc", options.get("nvcc", []))],
            ldflags=[
                *(f"-L{path}" for path in ext.library_dirs),
                *(f"-l{library}" for library in ext.libraries),
                *(f"-Wl,-rpath,{path}" for path in ext.runtime_library_dirs),
                *ext.extra_link_args,
            ],
            objects=ext.extra_objects,
            torch_headers=Path(self.build_temp).resolve() / "ported_torch",
            installed=getattr(ext, "installed_headers", None),
            with_musa=ext.with_musa,
        )
        recipe.build(verbose=self.verbose > 0)


def load(
    name: str,
    sources: str | Path | Sequence[str | os.PathLike[str]],
    extra_cflags: Sequence[str] | None = None,
    extra_musa_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str | os.PathLike[str]] | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    with_musa: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
    installed_headers: InstalledHeaders | None = None,
) -> Any:
    """Builds an extension if its sources, headers or options have changed, and loads it.

    A call after a change returns a module of the new build; modules of earlier builds remain usable.
    A process cannot register the same `TORCH_LIBRARY` operators or pybind11 classes twice.

    Args:
        name (str): name of the module.
        sources (str or list of str): .cpp, .mu and .cu files.
        extra_cflags, extra_musa_cflags, extra_ldflags (list of str): for the C++ compiler, mcc, linker.
        extra_include_paths (list of str): include folders.
        build_directory (str): default: a folder in `TORCH_EXTENSIONS_DIR`, as in torch.
        verbose (bool): print the commands.
        with_musa (bool): accepted like torch's `with_cuda`, but ignored: the suffixes of sources decide.
        is_python_module (bool): return the imported module; otherwise load the library, which registers its
            operators under `torch.ops`, and return None.
        is_standalone (bool): build an executable, and return its path. The file has the name `name`, and
            finds the libraries of torch, the runtime and the SDK where they are now.
        keep_intermediates (bool): if False, object files and ported sources are removed after the build, so
            that the next call compiles again.
        installed_headers (InstalledHeaders): headers of another package.

    Raises:
        RuntimeError: if compilation fails; the message contains the compiler's output.
    """
    files = [Path(source).resolve() for source in ([sources] if isinstance(sources, str | Path) else sources)]
    folder = Path(build_directory) if build_directory else _default_folder(name, verbose)
    if not folder.is_dir():
        raise RuntimeError(f"build_directory {folder} does not exist. Fix: create it, or omit the argument")
    recipe = _Recipe(
        name=name,
        sources=files,
        folder=folder.resolve(),
        target=folder.resolve() / (name if is_standalone else f"{name}.so"),
        include_paths=[Path(path).resolve() for path in extra_include_paths or []],
        cflags=extra_cflags or [],
        musa_cflags=extra_musa_cflags or [],
        ldflags=extra_ldflags or [],
        objects=[],
        standalone=is_standalone,
        installed=installed_headers,
    )
    # If several processes, such as torchrun's, load the same extension at once, one of them builds
    # it.
    baton = FileBaton(str(folder / "lock"))
    if baton.try_acquire():
        try:
            recipe.build(verbose)
            if not keep_intermediates:
                recipe.remove_intermediates()
        finally:
            baton.release()
    else:
        baton.wait()
    if is_standalone:
        return str(recipe.target)
    library = _loadable(recipe.target)
    if not is_python_module:
        torch.ops.load_library(library)
        return None
    return _imported(name, library)


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    musa_sources: str | Sequence[str] | None = None,
    cuda_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | dict[str, str] | None = None,
    with_pytorch_error_handling: bool = True,
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    no_implicit_headers: bool = False,
    **kwargs: Any,
) -> Any:
    """Builds and loads an extension from source strings; see `load`.

    Args:
        cpp_sources (str or list of str): C++. `torch/types.h` is included (`torch/extension.h` for pybind11).
        musa_sources (str or list of str): kernels and the functions that launch them.
        cuda_sources (str or list of str): the same in CUDA; ported first.
        functions (list of str, or dict of str to docstring): functions that the module exports; each must be
            declared in cpp_sources.
        with_pytorch_error_handling (bool): translate C++ exceptions to torch's errors.
        no_implicit_headers (bool): the sources include all headers that they need. Compiles seconds
            faster without torch's headers.
        kwargs: passed to `load`.
    """
    folder = Path(build_directory) if build_directory else _default_folder(name, verbose)
    headers = [] if no_implicit_headers else ["#include <torch/extension.h>"]
    host = [*headers, *_strings(cpp_sources)]
    if functions is not None:
        named = (
            functions
            if isinstance(functions, dict)
            else {function: function for function in _strings(functions)}
        )
        host.append("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {")
        for function, text in named.items():
            called = f"torch::wrap_pybind_function({function})" if with_pytorch_error_handling else function
            host.append(f'  m.def("{function}", {called}, R"doc({text})doc");')
        host.append("}")
    sources = [_written(folder / "main.cpp", "\n".join(host))]
    for texts, suffix, head in (
        (musa_sources, "mu", "ATen/musa/MUSAContext.h"),
        (cuda_sources, "cu", "ATen/cuda/CUDAContext.h"),
    ):
        if texts:
            begin = "" if no_implicit_headers else f"#include <torch/types.h>\n#include <{head}>\n"
            sources.append(_written(folder / f"kernels.{suffix}", begin + "\n".join(_strings(texts))))
    return load(name, sources, build_directory=str(folder), verbose=verbose, **kwargs)


def _default_folder(name: str, verbose: bool) -> Path:
    try:
        return Path(of_torch._get_build_directory(name, verbose))
    except OSError as error:
        raise RuntimeError(
            f"the build folder of {name} cannot be created: {error}\n"
            "Likely causes: the home folder is read-only or belongs to another user; a wrong "
            'TORCH_EXTENSIONS_DIR.\nFix: export TORCH_EXTENSIONS_DIR="$(mktemp -d)", or pass build_directory'
        ) from error


def include_paths() -> list[str]:
    """Returns the include folders of extensions: the runtime's, the SDK's, torch's."""
    from musa_runtime import config

    torch_folders = [str(_TORCH / "include"), str(_TORCH / "include/torch/csrc/api/include")]
    return [config.include_dir(), os.path.join(config.musa_home(), "include"), *torch_folders]


def library_paths() -> list[str]:
    """Returns the library folders of extensions."""
    from musa_runtime import config

    return [config.library_dir(), os.path.join(config.musa_home(), "lib"), str(_TORCH / "lib")]


class _Recipe:
    """The inputs and outputs of one extension's build."""

    def __init__(
        self,
        name: str,
        sources: list[Path],
        folder: Path,
        target: Path,
        include_paths: list[Path],
        cflags: Sequence[str],
        musa_cflags: Sequence[str],
        ldflags: Sequence[str],
        objects: Sequence[str],
        torch_headers: Path | None = None,
        with_musa: bool = True,
        standalone: bool = False,
        installed: InstalledHeaders | None = None,
    ) -> None:
        self.name = name
        self.sources = sources
        self.folder = folder
        self.target = target
        self.include_paths = include_paths
        self.cflags = cflags
        self.musa_cflags = musa_cflags
        self.ldflags = ldflags
        self.objects = objects
        self.torch_headers = torch_headers or folder / "ported" / "torch"
        self.installed = installed
        self.with_musa = with_musa
        self.standalone = standalone

    def build(self, verbose: bool) -> None:
        missing = [str(source) for source in self.sources if not source.is_file()]
        if missing:
            raise RuntimeError(f"{self.name}: there is no {', '.join(missing)}")
        self.folder.mkdir(parents=True, exist_ok=True)
        system = [*include_paths(), *(self.installed.folders if self.installed else []), _python_include()]
        # Programs also name folders of `include_paths`. A build with CUDA sources ports the others.
        headers = [
            path for path in self.include_paths if str(path) not in {os.path.realpath(p) for p in system}
        ]
        after: list[Path] = []
        of_kernels: list[str] = []
        sources, cflags, musa_cflags = self.sources, self.cflags, self.musa_cflags
        runtime = ["-lmusa_runtime", "-lmusart"] if self.with_musa else []
        forced = FORCE_MCC in cflags
        cflags = [raised(option) for option in cflags if option != FORCE_MCC]
        musa_cflags = [raised(option) for option in musa_cflags if option != FORCE_MCC]
        kernels = forced or any(_is_kernel(source) for source in sources)
        if self.with_musa and any(_is_cuda(source) for source in sources):
            sources, headers, after, of_kernels = _ported(self, headers)
            translated = of_nvcc(musa_cflags)
            if translated.dropped:
                print(f"{self.name}: ignored options of nvcc: {' '.join(translated.dropped)}")
            cflags, musa_cflags = port_macros(cflags), port_macros(translated.kept)
        elif kernels:
            after = [self.installed.torch if self.installed else _torch_headers(self.torch_headers)]
            of_kernels = [f"-I{include_dir()}"]
        if kernels:
            compile_musa = [
                *(_mcc(), "-x", "musa", "-O3", "-U__CUDA__", *_offload_flags()),
                f"-I{overlay_dir(after[0])}",
            ]
        else:
            compile_musa = ["false"]  # the rule has no sources
        common = [
            "-std=c++20",
            "-fPIC",
            f"-DTORCH_EXTENSION_NAME={self.name}",
            "-DTORCH_API_INCLUDE_EXTENSION_H",
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
            *(f"-I{path}" for path in headers),
            *(f"-isystem{path}" for path in system),
            *(f"-idirafter{path}" for path in after),
        ]
        compile_musa += [*common, *of_kernels, *musa_cflags]
        compile_cxx = [*of_torch.get_cxx_compiler().split(), "-O2", *common, *cflags]
        if forced:
            compile_cxx = [*compile_musa, *cflags]
        libraries = library_paths()
        if self.standalone:
            # An executable has no Python, and no process that has loaded the SDK for it: its libraries are
            # linked whether or not it calls them, because libmusa_runtime.so needs them and does not find
            # them itself.
            linked = [*(f"-Wl,-rpath,{path}" for path in libraries), "-Wl,--no-as-needed"]
            linked += ["-lc10", "-ltorch_cpu", "-ltorch", *runtime, *(["-lmusa"] if self.with_musa else [])]
        else:
            linked = ["-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python", *runtime]
        _ninja.build(
            folder=self.folder,
            target=self.target,
            compile_c=[
                *switches.command("CC", "cc"),
                *["-O2", "-fPIC"],
                *(f"-I{path}" for path in headers),
                *(option for option in cflags if not option.startswith("-std=")),
            ],
            compile_cxx=compile_cxx,
            compile_musa=compile_musa,
            link=[
                *of_torch.get_cxx_compiler().split(),
                *([] if self.standalone else ["-shared"]),
                *self.objects,
                *(f"-L{path}" for path in libraries),
                *linked,
                *self.ldflags,
            ],
            sources=sources,
            is_kernel=_is_kernel,
            verbose=verbose,
        )

    def remove_intermediates(self) -> None:
        """Removes what the build wrote, except the target."""
        shutil.rmtree(self.folder / "ported", ignore_errors=True)
        for path in [*self.folder.glob("*.o"), self.folder / "build.ninja"]:
            path.unlink(missing_ok=True)


def _is_kernel(source: Path) -> bool:
    return source.suffix in (*KERNEL_SUFFIXES, *CUDA_SUFFIXES)


def _is_cuda(source: Path) -> bool:
    if source.suffix in CUDA_SUFFIXES:
        return True
    if source.suffix in KERNEL_SUFFIXES:
        return False
    return _CUDA_NAMES.search(source.read_text(errors="replace")) is not None


def _ported(recipe: _Recipe, headers: list[Path]) -> tuple[list[Path], list[Path], list[Path], list[str]]:
    """Ports the recipe's sources and include folders into its build folder."""
    place = recipe.folder / "ported"
    of_headers = [port_folder(folder, place / f"include{i}") for i, folder in enumerate(headers)]
    sources = port_sources(recipe.sources, place / "sources")
    after = [recipe.installed.torch if recipe.installed else _torch_headers(recipe.torch_headers)]
    return sources, of_headers, after, ["-include", str(prelude()), f"-I{include_dir()}"]


@functools.cache
def _torch_headers(target: Path) -> Path:
    """Ports torch's headers once for all extensions of a setup.py, because it takes three seconds."""
    return port_torch_headers(target)


def _offload_flags() -> list[str]:
    present = [arch.removeprefix("mp_") for arch in device.get_arch_list()]
    return mcc.offload_flags(_mcc(), present)


def _mcc() -> str:
    from musa_runtime import config

    found = os.environ.get("PYTORCH_MCC") or os.path.join(config.musa_home(), "bin", "mcc")
    if not os.path.exists(found):
        raise RuntimeError(
            f"there is no MUSA compiler at {found}.\nLikely causes: only the SDK's runtime is installed, "
            "or MUSA_HOME is another folder.\nFix: install the SDK's compiler, or set PYTORCH_MCC"
        )
    return found


def _python_include() -> str:
    import sysconfig

    return sysconfig.get_path("include")


def _strings(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _written(path: Path, text: str) -> Path:
    """Writes a file only if it has changed, to avoid rebuilds."""
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
    return path


# Target -> identities of its builds that this process has loaded, in order.
_builds: dict[Path, list[tuple[int, int, int]]] = {}


def _loadable(target: Path) -> Path:
    """Returns the path to load: the target, or for later builds a copy named `<name>_v<number>.so`.

    The dynamic loader and Python cache libraries by path, and would ignore that the file has changed.
    """
    stat = target.stat()
    identity = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
    builds = _builds.setdefault(target, [])
    known = identity in builds
    if not known:
        builds.append(identity)
    version = builds.index(identity)
    if version == 0:
        return target
    copy = target.with_name(f"{target.stem}_v{version}.so")
    if not known:
        # Replaced atomically, because another process may be using an earlier file of this name.
        temporary = copy.with_name(f"{copy.name}.{os.getpid()}")
        shutil.copyfile(target, temporary)
        os.replace(temporary, copy)
    return copy


def _imported(name: str, path: Path) -> ModuleType:
    lazy_init()  # loads the runtime's libraries, which the extension links to
    # pybind11 caches modules by full name. The last part of the name must be that of the init
    # function.
    full_name = name if path.stem == name else f"{path.stem}.{name}"
    spec: Any = importlib.util.spec_from_file_location(full_name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module
