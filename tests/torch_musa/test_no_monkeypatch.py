# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Activation replaces no attribute of torch, and adds only attributes that torch's own helpers add."""

import json
import re
from pathlib import Path

import pytest

from tests.harness.subprocesses import run_python

pytestmark = pytest.mark.once

SCRIPT = Path(__file__).with_name("attributes_of_torch.py")

USE = """
import torch, torch_musa

x = torch.ones(4, device="musa", requires_grad=True)
(x * torch.randn(4, device="musa")).sum().backward()
torch.musa.synchronize(); torch.musa.memory_summary(); torch.musa.Event().record()
"""

# The changes that torch makes in itself to rename PrivateUse1. Patterns are matched with
# "module:name = kind of origin"; the origin shows that torch created the object, not this project.
RENAMING = (
    r"torch\._C\._\w+:\w+\.(name|__repr__|__str__) = \w+ of torch\.utils\.backend_registration",
    r"torch\.utils\.backend_registration:_privateuse1_backend_name = str",
    # The counter of torch's hooks: torch.optim.optimizer.register_optimizer_step_pre_hook
    r"torch\.utils\.hooks:RemovableHandle\.next_id = int",
)

ADDITIONS = (
    # torch._register_device_module
    r"torch:musa = module torch_musa\.musa",
    # torch.utils.rename_privateuse1_backend
    r"torch\._C\.(_profiler:ProfilerActivity|_autograd:DeviceType)\.MUSA = \w+ of torch\._C\.\w+",
    # torch.utils.generate_methods_for_privateuse1_backend
    r"torch.*\.(is_)?musa = (property|function) of torch\.utils\.backend_registration",
    # torch.library, which gets the operators of packs from torch.ops
    r"torch\.jit\._builtins:_builtin_table\[\d+\] = str",
    r"torch\.ops:_dir\[\d+\] = str",
    # Names that programs query in a build of torch: docs/design/compat.md. None replaces an attribute.
    r"torch\.version:musa = str",
    r"torch\.distributed:is_mccl_available = function of musa_distributed\.registration",
    r"torch\.distributed:__getattr__ = function of musa_distributed\.registration",
    r"torch\.autograd\.profiler_util:FormattedTimesMixin\.(self_)?musa_\w+ = property( of [\w.]+)?",
    r"torch:(rope|swish_glu) = function of musa_compat\.fused_layers",
    r"torch\.nn\.functional:(rope|swish_glu) = function of musa_compat\.fused_layers",
    r"torch\.nn:(RoPE|SwishGLU) = type of musa_compat\.fused_layers",
    # torch.distributed.Backend.register_backend
    r"torch\.distributed\.distributed_c10d:Backend\.MCCL = str",
)


def changes(statement):
    done = run_python(str(SCRIPT), statement, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def refused(found):
    """The changes that are not torch's own."""
    return {
        kind: [f"{path} = {what}" for path, what in found[kind] if not allowed(f"{path} = {what}", patterns)]
        for kind, patterns in (("replaced", RENAMING), ("added", ADDITIONS))
    }


def allowed(line, patterns):
    return any(re.fullmatch(pattern, line) for pattern in patterns)


@pytest.mark.parametrize("statement", ["import torch_musa", USE], ids=["activated", "used"])
def test_torch_is_left_as_it_is(statement):
    found = changes(statement)
    assert ["torch:musa", "module torch_musa.musa"] in found["added"]  # the comparison did look at torch
    assert refused(found) == {"replaced": [], "added": []}


BAD = {
    "import torch; torch.random.fork_rng = lambda: None": ("replaced", "torch.random:fork_rng"),
    "import torch; torch.cuda._lazy_init = print": ("replaced", "torch.cuda:_lazy_init"),
    "import torch; torch.Tensor.to = lambda self, *a: self": ("added", "torch:Tensor.to"),
    "import torch; torch.storage.UntypedStorage.is_musa = True": (
        "added",
        "torch.storage:UntypedStorage.is_musa",
    ),
    "import torch; torch.serialization._package_registry[0] = ()": (
        "replaced",
        "torch.serialization:_package_registry[0]",
    ),
    "import torch; del torch.nn.Module.cuda": ("replaced", "torch.nn.modules.module:Module.cuda"),
    "import torch; torch.swish_glu = print": ("added", "torch:swish_glu"),
    "import torch; torch.set_num_threads = torch.get_num_threads": ("replaced", "torch:set_num_threads"),
}


def test_each_kind_of_patch_is_noticed():
    # One process for all: the statements do not interfere, and importing torch takes seconds.
    found = refused(changes("\n".join(BAD)))
    missed = [
        path for kind, path in BAD.values() if not any(line.startswith(f"{path} = ") for line in found[kind])
    ]
    assert missed == []
