# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""First steps on a MUSA device: tensors, arithmetic, synchronisation, choosing a device.

python examples/quickstart.py
"""

import argparse

import torch


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="musa")
    device = torch.device(parser.parse_args(argv).device)

    # Only torch needs to be imported: an installed torch_musa adds the device.
    a = torch.tensor([1.2, 2.3], device=device)
    b = torch.tensor([1.2, 2.3]).to(device)
    c = a + b
    print("a + b =", c)

    # Kernel launches are asynchronous and run in stream order. Reading a value waits for them, and
    # so does this call.
    backend = torch.get_device_module(device)
    backend.synchronize()
    assert c.cpu().tolist() == (a.cpu() + b.cpu()).tolist()

    # New tensors are created on the device of the enclosing `with`.
    with torch.device(device):
        identity = torch.eye(2)
    print("identity lives on", identity.device)

    if device.type != "cpu":
        print(f"{backend.device_count()} device(s), the current one is {backend.get_device_name()}")
        with backend.device(backend.device_count() - 1):
            print("inside the device context:", torch.ones(1, device=device.type).device)
        print("outside again:", torch.ones(1, device=device.type).device)

    x = torch.randn(64, 32, device=device)
    layer = torch.nn.Linear(32, 4).to(device)
    loss = layer(x).square().mean()
    loss.backward()
    print(f"loss {loss.item():.4f}, gradient on {layer.weight.grad.device}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
