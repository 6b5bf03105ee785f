// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The host calls a lambda that is only for the device.
int host() {
  auto plus_one = [] __device__(int x) { return x + 1; };
  return plus_one(1);
}
