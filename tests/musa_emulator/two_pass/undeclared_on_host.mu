// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Only the host pass reads the code of the host.
int main() {
#ifndef __MUSA_ARCH__
  return undeclared;
#endif
}
