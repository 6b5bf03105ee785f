# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The loader of modules that packs provide in `torch.musa` and `torch_musa`."""

import importlib
import sys


class Loader:
    """Puts the module of an entry point into `sys.modules` under another name, or raises `reason`."""

    def __init__(self, entry, reason):
        self.entry, self.reason = entry, reason

    def create_module(self, spec):
        return None  # Python's default; exec_module replaces it

    def exec_module(self, module):
        if self.reason is not None:
            # Raised without the module's name, because `from package import module` would otherwise
            # replace the error with its own.
            raise ModuleNotFoundError(self.reason)
        # After this call the import system returns the module in sys.modules.
        sys.modules[module.__name__] = importlib.import_module(self.entry.module)

    def get_code(self, name):
        """Returns the code that `python -m` runs: the module under its own name, for its relative imports."""
        if self.reason is not None:
            raise ImportError(self.reason)
        code = f"import runpy\nrunpy.run_module({self.entry.module!r}, run_name=__name__, alter_sys=True)\n"
        return compile(code, f"<{name}>", "exec")
