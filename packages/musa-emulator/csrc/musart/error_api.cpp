// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <utility>

#include "api_support.h"
#include "engine/error.h"

using namespace musa_emulator;

// Errors can be read in every state, so these functions do not use api().

musaError_t musaGetLastError(void) { return std::exchange(thread_state().last_error, musaSuccess); }

musaError_t musaPeekAtLastError(void) { return thread_state().last_error; }

const char* musaGetErrorString(musaError_t error) { return error_string(error); }

const char* musaGetErrorName(musaError_t error) { return error_name(error); }
