// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Histograms over several dimensions with given bin edges; one thread per point finds its bin. Sums are kept in
// double precision, so that counts are exact.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/musa/Atomic.muh>
#include <ATen/native/Histogram.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/cat.h>

#include <array>
#include <vector>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"

namespace musa_ops_ported {
namespace {

// How a bin is found: by bisection, by dividing the range, or by division corrected by comparing adjacent edges.
enum class Search { Binary, Linear, LinearThenLocal };

template <typename T>
struct Bins {
  const T* edges; // edges of all dimensions, concatenated
  int64_t dimensions;
  std::array<int64_t, kMaxDims> starts, counts, steps; // starts and counts of edges; strides of the histogram

  // Returns the index of the first edge above x, among those in [from, to).
  __device__ int64_t upper_bound(const T* of_dimension, int64_t from, int64_t to, T x) const {
    while (from < to) {
      const int64_t middle = from + (to - from) / 2;
      if (x < of_dimension[middle]) {
        to = middle;
      } else {
        from = middle + 1;
      }
    }
    return from;
  }

  // Returns the bin of x, or -1 if x is out of range.
  __device__ int64_t bin(int64_t dimension, T x, Search search) const {
    const T* const here = edges + starts[dimension];
    const int64_t count = counts[dimension];
    const T low = here[0], high = here[count - 1];
    if (!(x >= low && x <= high)) {
      return -1;
    }
    int64_t result;
    if (search == Search::Binary) {
      result = upper_bound(here, 0, count, x) - 1;
    } else {
      result = static_cast<int64_t>((x - low) * static_cast<T>(count - 1) / (high - low));
      if (search == Search::LinearThenLocal) {
        const int64_t from = result > 0 ? result - 1 : 0;
        result = upper_bound(here, from, result + 2 < count ? result + 2 : count, x) - 1;
      }
    }
    return result == count - 1 ? result - 1 : result; // the last bin includes its right edge
  }
};

template <typename T>
void count_points(
    const at::Tensor& points, const std::optional<at::Tensor>& weight, const at::TensorList& bin_edges, Search search,
    const at::Tensor& sums) {
  Bins<T> bins;
  bins.dimensions = points.size(1);
  const at::Tensor edges = at::cat(bin_edges);
  bins.edges = edges.const_data_ptr<T>();
  int64_t start = 0;
  for (int64_t d = 0; d < bins.dimensions; ++d) {
    bins.starts[d] = start;
    bins.counts[d] = bin_edges[d].numel();
    bins.steps[d] = sums.stride(d);
    start += bins.counts[d];
  }
  const T* const in = points.const_data_ptr<T>();
  const at::Tensor weights = weight.has_value() ? weight->contiguous() : at::Tensor();
  const T* const weights_of_points = weights.defined() ? weights.const_data_ptr<T>() : nullptr;
  double* const out = sums.mutable_data_ptr<double>();
  for_each(points.size(0), [=] __device__(int64_t point) {
    int64_t at = 0;
    for (int64_t d = 0; d < bins.dimensions; ++d) {
      const int64_t bin = bins.bin(d, in[point * bins.dimensions + d], search);
      if (bin < 0) {
        return;
      }
      at += bin * bins.steps[d];
    }
    gpuAtomicAddNoReturn(out + at, weights_of_points == nullptr ? 1.0 : static_cast<double>(weights_of_points[point]));
  });
}

void fill_histogram(
    const at::Tensor& self, const std::optional<at::Tensor>& weight, bool density, at::Tensor& hist,
    const at::TensorList& bin_edges, Search search) {
  const int64_t dimensions = self.size(-1);
  at::assert_no_internal_overlap(hist);
  TORCH_CHECK_NOT_IMPLEMENTED(
      dimensions <= kMaxDims, "a histogram over ", dimensions, " dimensions: the device's kernel takes up to ",
      kMaxDims, ".\nFix: compute it on the host: torch.histogramdd(x.cpu(), ...)");
  const at::Tensor sums = aten::zeros(hist.sizes(), hist.options().dtype(at::kDouble));
  const at::Tensor points = self.reshape({-1, dimensions}).contiguous();
  const auto weights = weight.has_value() ? std::optional<at::Tensor>(weight->reshape({-1})) : std::nullopt;
  MUSA_DISPATCH(self.scalar_type(), "histogram", (AT_EXPAND(AT_FLOATING_TYPES)), {
    count_points<scalar_t>(points, weights, bin_edges, search, sums);
  });
  hist.copy_(sums);
  if (density) {
    hist.div_(hist.sum());
    for (int64_t d = 0; d < dimensions; ++d) {
      at::DimVector shape(static_cast<size_t>(dimensions), 1);
      shape[d] = bin_edges[d].numel() - 1;
      hist.div_(bin_edges[d].diff().reshape(shape));
    }
  }
}

void histogramdd(
    const at::Tensor& self, const std::optional<at::Tensor>& weight, bool density, at::Tensor& hist,
    const at::TensorList& bin_edges) {
  fill_histogram(self, weight, density, hist, bin_edges, Search::Binary);
}
void histogramdd_linear(
    const at::Tensor& self, const std::optional<at::Tensor>& weight, bool density, at::Tensor& hist,
    const at::TensorList& bin_edges, bool local_search) {
  fill_histogram(self, weight, density, hist, bin_edges, local_search ? Search::LinearThenLocal : Search::Linear);
}

void select_outer_bin_edges(
    const at::Tensor& input, const int64_t dimensions, std::vector<double>& leftmost, std::vector<double>& rightmost) {
  const auto [least, greatest] = at::aminmax(input.reshape({-1, dimensions}), 0);
  const at::Tensor low = least.to(at::kCPU, at::kDouble), high = greatest.to(at::kCPU, at::kDouble);
  for (int64_t d = 0; d < dimensions; ++d) {
    leftmost[d] = low.const_data_ptr<double>()[d];
    rightmost[d] = high.const_data_ptr<double>()[d];
  }
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(histogramdd_stub, &musa_ops_ported::histogramdd)
REGISTER_PRIVATEUSE1_DISPATCH(histogramdd_linear_stub, &musa_ops_ported::histogramdd_linear)
REGISTER_PRIVATEUSE1_DISPATCH(histogram_select_outer_bin_edges_stub, &musa_ops_ported::select_outer_bin_edges)
} // namespace at::native
