// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <mccl.h>

#include <functional>

// Sets the function that mcclCommInitRank calls with the rank and whose result it returns. It may block.
void set_init_of_fake_mccl(std::function<mcclResult_t(int rank)> init);
// Returns the number of aborted communicators.
int aborts_of_fake_mccl();
