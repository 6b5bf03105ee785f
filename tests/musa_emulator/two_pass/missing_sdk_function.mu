// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A function of CUDA's runtime that MUSA is not known to have.
int main() { return musaMemDiscardBatchAsync(nullptr, nullptr, 0, nullptr, nullptr, 0, 0, nullptr); }
