// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The host calls a __device__ function.
__device__ int answer() { return 42; }

int main() { return answer(); }
