// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// An error code that MUSA is not known to have.
bool timed_out(musaError_t status) { return status == musaErrorCollectiveTimeout; }
