// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Indices, and GatherX, Scatter and ScatterND with them.
//
// Indices out of range. A kernel cannot raise: muDNN fails as hardware asserts do, and the device is lost. Where the
// host can address the device's memory, values are therefore looked at first, which costs a wait, and torch's own kind
// of error is raised. A device with memory of its own is not waited for, as in torch.cuda, unless launches block
// (MUSA_LAUNCH_BLOCKING=1). TORCH_MUSA_CHECK_INDICES=0 or 1 decides otherwise. Nothing is looked at during a capture.
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

// A copy of what a contiguous tensor on the device holds. Waits for the current stream.
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

// For contiguous indices of LONG into a dimension of `size`. The first raises RuntimeError, as torch's gather and
// scatter do, the second IndexError.
void require_below(const at::Tensor& index, int64_t dim, int64_t size);
void require_index_below(const at::Tensor& index, int64_t dim, int64_t size);

// For contiguous labels of LONG, each one of `classes` or the one to ignore. Raises IndexError, as torch's losses do.
void require_labels(const at::Tensor& labels, int64_t ignored, int64_t classes);

Operand contiguous_index(const at::Tensor& index);
// Indices that may count from the end become indices that do not.
at::Tensor from_start(const at::Tensor& index, int64_t size);
// The same after a look at them: contiguous, of LONG, on self's device. IndexError for one out of range.
at::Tensor wrapped_index(const at::Tensor& index, const at::Tensor& self, int64_t dim, int64_t size);

at::Tensor at_least_1d(const at::Tensor& tensor);

// out (outer, picks, inner) = slices of params (outer, size, inner) in the order of the indices. All contiguous.
void pick_slices(
    const at::Tensor& out, const at::Tensor& index, const at::Tensor& params, int64_t outer, int64_t size,
    int64_t inner);
// out[r, k] = params[r, index[r, k]] for each of the rows. All contiguous.
void pick_elements(const at::Tensor& out, const at::Tensor& index, const at::Tensor& params, int64_t rows);

using ScatterMode = dnn::Scatter::Mode;
using RowMode = dnn::ScatterND::Mode;
// inout[index[i, j], j] = source[i, j] for dim 0. All contiguous.
void run_scatter(
    ScatterMode mode, const at::Tensor& inout, int64_t dim, const at::Tensor& index, const at::Tensor& source);
// Whole rows of inout (size, inner), named by index, are written with rows of source (numel of index, inner).
void run_scatter_rows(
    RowMode mode, const at::Tensor& inout, int64_t size, const at::Tensor& index, const at::Tensor& source);

// Calls write(result), where result is contiguous, has the elements of self at first, and ends in out.
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
