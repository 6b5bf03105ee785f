# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Version and dependencies of the packages that are compiled against torch.

scikit-build-core calls `dynamic_metadata` for each `[[tool.dynamic-metadata]]` of a package's
pyproject.toml. The minor version of torch in the build environment becomes part of the version
(`0.1.0+torch2.13`) and pins the dependency (`torch==2.13.*`), so wheels for different torch versions have
different names. docs/design/releases.md has the reasons. A package with `kernels = true` also names the kind
of SDK that they are compiled for (`0.1.0+torch2.13.emulator`): docs/design/packaging.md.
"""

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import ROOT, WorkspaceError, versions

UNPINNED = "torch"


def torch_folder() -> Path:
    """Returns the folder of the torch package in this environment, without importing it.

    Raises:
        WorkspaceError: if there is none.
    """
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise WorkspaceError(
            "torch is not installed in this build's environment, and the package is compiled against it.\n"
            "Likely causes: pip builds in an environment of its own; torch was not installed yet.\n"
            f"Fix: pip install '{versions.served_torch().requirement}', then build with "
            "pip install --no-build-isolation --no-deps (or: python3 tools/dev.py setup)"
        )
    return Path(found.origin).parent


def minor_of(folder: Path) -> str:
    """Returns the minor version in torch's version.py: "2.13" for 2.13.1+cu130."""
    text = (folder / "version.py").read_text(encoding="utf-8")
    found = re.search(r"""^__version__ = ['"](\d+\.\d+)\.""", text, re.MULTILINE)
    if found is None:
        raise WorkspaceError(
            f"{folder / 'version.py'} has no line `__version__ = 'X.Y.Z'`; is it torch's?\n"
            f"Fix: pip install --force-reinstall '{versions.served_torch().requirement}'"
        )
    return found.group(1)


def sdk_kind(environ: Mapping[str, str] | None = None) -> str:
    """Returns the kind of the SDK that a build finds: "emulator", "cuda", "musa4".

    environ: the environment variables of the build; those of this process by default.

    Raises:
        WorkspaceError: if there is none.
    """
    # By path: the environment of a build may have the runtime of another tree.
    file = ROOT / "packages" / "musa-runtime" / "src" / "musa_runtime" / "sdk.py"
    spec = importlib.util.spec_from_file_location("musa_sdk_of_the_build", file)
    assert spec is not None and spec.loader is not None
    sdk = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sdk)
    found = sdk.resolve(environ)
    if found.home is None:
        raise WorkspaceError(found.reason)
    return found.kind


def for_minor(settings: Mapping[str, Any], minor: str, kind: str | None = None) -> dict[str, Any]:
    """Returns the fields for a minor version of torch, from the version and dependencies in pyproject.toml.

    kind: the kind of SDK that the version names, None for a package without kernels.

    Raises:
        WorkspaceError: if the minor is not served, or torch is not a dependency without a version.
    """
    served = versions.served_torch()
    if minor not in served:
        raise WorkspaceError(
            f"torch {minor} is not served; these packages can be built for torch {served}.\n"
            f"Fix: pip install '{served.requirement}'"
        )
    dependencies = list(settings["dependencies"])
    if UNPINNED not in dependencies:
        raise WorkspaceError(
            f'`dependencies` of [[tool.dynamic-metadata]] has no "{UNPINNED}" without a version'
        )
    dependencies[dependencies.index(UNPINNED)] = f"torch=={minor}.*"
    label = f"torch{minor}.{kind}" if kind else f"torch{minor}"
    return {"version": f"{settings['version']}+{label}", "dependencies": dependencies}


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """The hook of scikit-build-core."""
    minor = minor_of(torch_folder())
    return for_minor(settings, minor, sdk_kind() if settings.get("kernels") else None)
