# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The import hook of the pack: actions before modules of torchvision are imported.

torchvision's C++ library defines the schemas of its operators, and torch permits one definition of each. The
pack defines them where that library is absent. So its definitions are removed before the library is loaded,
and made after that if it could not be loaded: torchvision registers fake kernels for `torchvision::nms`
and `torchvision::qnms` in any case, which fails without their schemas.
"""

import sys


class TorchvisionImports:
    """A finder for `sys.meta_path` that finds nothing. `find_spec` runs before a module is imported."""

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
