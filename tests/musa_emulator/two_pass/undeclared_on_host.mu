// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Only the host pass compiles code for the host.
int main() {
#ifndef __MUSA_ARCH__
  return undeclared;
#endif
}
