// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <mccl.h>

#include <functional>

// Called by mcclCommInitRank with the rank; its result is the call's. May block.
void set_init_of_fake_mccl(std::function<mcclResult_t(int rank)> init);
// Communicators that were aborted.
int aborts_of_fake_mccl();
