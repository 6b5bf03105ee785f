// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Checks of indices, and GatherX, Scatter and ScatterND.
//
// Indices out of range: a kernel cannot raise an error; muDNN fails like a hardware assert, which makes the device
// unusable. On a device that computes on the host (c10/musa/MUSACapabilities.h) values are therefore checked first, which
// waits for the stream, and torch's type of error is raised. On other devices they are not checked, as in torch.cuda,
// unless launches block (MUSA_LAUNCH_BLOCKING=1). TORCH_MUSA_CHECK_INDICES=1 or 0 forces the check on or off. It is disabled during a
// capture.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>
#include <musa_runtime/mudnn.h>

#include <vector>

#include "support/elementwise.h"
#include "support/predicates.h"

namespace musa_ops_mudnn {

inline constexpr Dtypes index_types = one(at::kInt) | one(at::kLong);

bool looks_at_values();

// Returns a copy of the elements of a contiguous tensor on the device. Waits for the current stream.
template <class T>
std::vector<T> values_of(const at::Tensor& tensor) {
  std::vector<T> values(static_cast<size_t>(tensor.numel()));
  const c10::musa::MUSAGuard guard(tensor.device().index());
  const musaStream_t stream = c10::musa::getCurrentMUSAStream(tensor.device().index()).stream();
  C10_MUSA_CHECK(
      musaMemcpyAsync(values.data(), tensor.const_data_ptr(), tensor.nbytes(), musaMemcpyDeviceToHost, stream));
  C10_MUSA_CHECK(musaStreamSynchronize(stream));
  return values;
}

// For contiguous LONG indices into a dimension of `size`. The first raises RuntimeError, like torch's gather and
// scatter, the second IndexError.
void require_below(const at::Tensor& index, int64_t dim, int64_t size);
void require_index_below(const at::Tensor& index, int64_t dim, int64_t size);

// For contiguous LONG labels, which must be less than `classes` or equal to `ignored`. Raises IndexError, like torch's
// losses.
void require_labels(const at::Tensor& labels, int64_t ignored, int64_t classes);

Operand contiguous_index(const at::Tensor& index);
// Converts negative indices, which count from the end, to non-negative ones.
at::Tensor from_start(const at::Tensor& index, int64_t size);
// Checks the indices and converts negative ones: the result is contiguous, LONG, and on self's device. Raises
// IndexError for an index out of range.
at::Tensor wrapped_index(const at::Tensor& index, const at::Tensor& self, int64_t dim, int64_t size);

at::Tensor at_least_1d(const at::Tensor& tensor);

// Computes out (outer, picks, inner) = slices of params (outer, size, inner) in the order of the indices. All are
// contiguous.
void pick_slices(
    const at::Tensor& out, const at::Tensor& index, const at::Tensor& params, int64_t outer, int64_t size,
    int64_t inner);
// Computes out[r, k] = params[r, index[r, k]] for each row r. All are contiguous.
void pick_elements(const at::Tensor& out, const at::Tensor& index, const at::Tensor& params, int64_t rows);

using ScatterMode = dnn::Scatter::Mode;
using RowMode = dnn::ScatterND::Mode;
// Computes inout[index[i, j], j] = source[i, j] for dim 0. All are contiguous.
void run_scatter(
    ScatterMode mode, const at::Tensor& inout, int64_t dim, const at::Tensor& index, const at::Tensor& source);
// Writes the rows of source (numel of index, inner) to the rows of inout (size, inner) that index selects.
void run_scatter_rows(
    RowMode mode, const at::Tensor& inout, int64_t size, const at::Tensor& index, const at::Tensor& source);

// Calls write(result) with a contiguous tensor that initially holds the elements of self, and stores the result in
// `out`.
template <class Write>
void update(const at::Tensor& self, const at::Tensor& out, Write&& write) {
  at::assert_no_partial_overlap(out, self);
  write_contiguous(out, [&](const at::Tensor& result) {
    if (!result.is_same(self)) {
      convert(result, self);
    }
    write(result);
  });
}

} // namespace musa_ops_mudnn
