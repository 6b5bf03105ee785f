# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's import hook: runs before torchvision's modules are imported.

torchvision's C++ library defines the schemas of its operators, and torch allows each to be defined once. The
pack defines them if that library is absent, so it removes its definitions before the library is loaded, and
restores them if loading failed. torchvision registers fake kernels for `torchvision::nms` and
`torchvision::qnms` in any case, which fails without their schemas.
"""

import sys


class TorchvisionImports:
    """A finder for `sys.meta_path` that finds no module; its `find_spec` runs before each import."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("torchvision."):
            from . import schemas

            if name == "torchvision.extension":  # loads the C++ library
                schemas.remove()
            elif name == "torchvision._meta_registrations":
                schemas.define_missing(for_torchvision=True)
            elif "torchvision._meta_registrations" in sys.modules:
                schemas.register_missing_fakes()
        return None


def musa_import(musa):
    """Adds the finder."""
    sys.meta_path.insert(0, TorchvisionImports)
