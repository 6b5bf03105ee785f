# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A product of two matrices on the device. Each step is printed before it starts, so that the output of a
process that hangs or crashes ends with the step that failed."""

import sys


def _step(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    """Returns 0, or 1 if the result is wrong."""
    _step("import torch")
    import torch

    _step(f"torch {torch.__version__}; count devices")
    _step(f"{torch.musa.device_count()} devices; copy operands to the device")  # type: ignore[attr-defined]
    left, right = torch.arange(64 * 32.0).reshape(64, 32) / 100, torch.arange(32 * 16.0).reshape(32, 16) / 100
    operands = left.to("musa"), right.to("musa")
    _step("multiply")
    product = operands[0] @ operands[1]
    _step("wait for the device")
    torch.musa.synchronize()  # type: ignore[attr-defined]
    _step("copy the result to the host")
    difference = (product.cpu() - left @ right).abs().max().item()
    _step(f"largest difference from the CPU: {difference}")
    right_result = difference < 1e-2
    _step("the result is right" if right_result else "the result is WRONG")
    return int(not right_result)


if __name__ == "__main__":
    sys.exit(main())
