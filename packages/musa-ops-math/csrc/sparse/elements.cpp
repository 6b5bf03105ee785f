// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/_convert_indices_from_coo_to_csr.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/copy_sparse_to_sparse.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sparse_mask_native.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>
#include <declined.h>
#include <torch/library.h>

#include <limits>

// Sums and products of the elements of sparse tensors (COO), composed of torch's operators on indices and values.

namespace musa_ops_math::sparse {
namespace {

using at::Scalar;
using at::Tensor;
using c10::DispatchKey;

at::IntArrayRef sparse_sizes(const Tensor& tensor) { return tensor.sizes().slice(0, tensor.sparse_dim()); }

// The place of each element in a dense tensor of the sparse dimensions.
Tensor places(const Tensor& indices, at::IntArrayRef sizes) {
  Tensor found = indices.select(0, 0).clone();
  for (size_t dim = 1; dim < sizes.size(); ++dim) {
    found.mul_(sizes[dim]).add_(indices.select(0, static_cast<int64_t>(dim)));
  }
  return found;
}

Tensor indices_of(const Tensor& places, at::IntArrayRef sizes) {
  std::vector<Tensor> rows(sizes.size());
  Tensor rest = places;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    rows[dim] = rest.remainder(std::max<int64_t>(sizes[dim], 1));
    rest = rest.floor_divide(std::max<int64_t>(sizes[dim], 1));
  }
  return at::stack(rows, 0);
}

// Where the elements of a coalesced tensor, at the places `stored`, have the places `wanted`.
struct Search {
  Tensor found, matches; // for each wanted place: the number of an element, and whether that is there

  Search(const Tensor& stored, const Tensor& wanted)
      : found(at::searchsorted(stored, wanted).clamp_max_(stored.numel() - 1)),
        matches(stored.index_select(0, found).eq(wanted)) {}
};

// Sums of values with equal numbers from 0 to count - 1.
Tensor sums(const Tensor& values, const Tensor& numbers, int64_t count) {
  at::DimVector sizes(values.sizes());
  sizes[0] = count;
  if (values.scalar_type() == at::kBool) {
    return sums(values.to(at::kInt), numbers, count).ne(0);
  }
  return at::zeros(sizes, values.options()).index_add_(0, numbers, values);
}

Tensor coalesce(const Tensor& self) {
  if (self.is_coalesced()) {
    return self;
  }
  if (self._nnz() < 2) {
    Tensor copy = self.clone();
    copy._coalesced_(true);
    return copy;
  }
  const at::IntArrayRef sizes = sparse_sizes(self);
  if (sizes.empty()) {
    const Tensor values = self._values().sum(0, /*keepdim=*/true, self.scalar_type());
    return at::_sparse_coo_tensor_unsafe(self._indices().narrow(1, 0, 1), values, self.sizes(), self.options(), true);
  }
  const auto [unique, numbers, counts] =
      at::_unique2(places(self._indices(), sizes), /*sorted=*/true, /*return_inverse=*/true, /*return_counts=*/false);
  const Tensor values = sums(self._values(), numbers.view(-1), unique.numel());
  return at::_sparse_coo_tensor_unsafe(indices_of(unique, sizes), values, self.sizes(), self.options(), true);
}

// Gives `out`, a sparse tensor, the elements of another one.
Tensor& assign(Tensor& out, const Tensor& result) {
  out.sparse_resize_and_clear_(result.sizes(), result.sparse_dim(), result.dense_dim());
  at::copy_sparse_to_sparse_(out, result.to(out.scalar_type()));
  out._coalesced_(result.is_coalesced());
  return out;
}

bool same_device(const Tensor& self, const Tensor& other, const Tensor& out) {
  return self.is_privateuseone() && self.device() == other.device() && self.device() == out.device();
}

// ---- sums

bool sum_served(const Tensor& self, const Tensor& other, const Scalar& alpha, const Tensor& out) {
  const at::ScalarType common = at::result_type(self, other);
  const bool both = self.is_sparse() && out.is_sparse() && self.sparse_dim() == other.sparse_dim() &&
      self.dense_dim() == other.dense_dim();
  const bool dense =
      self.layout() == at::kStrided && out.layout() == at::kStrided && other.is_sparse() && other.sparse_dim() > 0;
  return other.is_sparse() && (both || dense) && same_device(self, other, out) && self.sizes() == other.sizes() &&
      at::canCast(common, out.scalar_type()) && common != at::kBool &&
      (!alpha.isFloatingPoint() || !c10::isIntegralType(common, true)) &&
      (!alpha.isComplex() || c10::isComplexType(common));
}

Tensor sum_of_sparse(const Tensor& self, const Tensor& other, const Scalar& alpha, at::ScalarType common) {
  const Tensor indices = at::cat({self._indices(), other._indices()}, 1);
  const Tensor values = at::cat({self._values().to(common), other._values().to(common).mul(alpha)}, 0);
  const Tensor both = at::_sparse_coo_tensor_unsafe(indices, values, self.sizes(), self.options().dtype(common));
  return self.is_coalesced() && other.is_coalesced() ? coalesce(both) : both;
}

// Adds the elements of a sparse tensor to a dense one, which is contiguous.
void add_elements(const Tensor& dense, const Tensor& other, const Scalar& alpha) {
  if (other._nnz() == 0) {
    return;
  }
  const at::IntArrayRef sizes = sparse_sizes(other);
  at::DimVector flat{c10::multiply_integers(sizes)};
  flat.append(dense.sizes().begin() + static_cast<std::ptrdiff_t>(sizes.size()), dense.sizes().end());
  dense.view(flat).index_add_(0, places(other._indices(), sizes), other._values().to(dense.scalar_type()).mul(alpha));
}

Tensor& sum_with_dense(
    const Tensor& self, const Tensor& other, const Scalar& alpha, at::ScalarType common, Tensor& out) {
  if (!out.is_same(self)) {
    if (out.is_alias_of(self)) {
      const Tensor copy = self.clone();
      return sum_with_dense(copy, other, alpha, common, out);
    }
    out.resize_(self.sizes());
    out.copy_(self);
  }
  if (out.scalar_type() == common && out.is_contiguous()) {
    add_elements(out, other, alpha);
    return out;
  }
  const Tensor result = at::empty(out.sizes(), out.options().dtype(common)).copy_(self);
  add_elements(result, other, alpha);
  return out.copy_(result);
}

Tensor& add_out(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& out) {
  if (!sum_served(self, other, alpha, out)) {
    return declined<Tensor&, const Tensor&, const Tensor&, const Scalar&, Tensor&>(
        DispatchKey::SparsePrivateUse1, "aten::add", "out", self, other, alpha, out);
  }
  const at::ScalarType common = at::result_type(self, other);
  if (self.is_sparse()) {
    return assign(out, sum_of_sparse(self, other, alpha, common));
  }
  return sum_with_dense(self, other, alpha, common, out);
}

// ---- products

bool product_served(const Tensor& self, const Tensor& other, const Tensor& out) {
  const auto is_number = [](const Tensor& tensor) { return tensor.dim() == 0 && tensor.is_cpu(); };
  if (!out.is_sparse() || !out.is_privateuseone() || !at::canCast(at::result_type(self, other), out.scalar_type()) ||
      (self.device() != out.device() && !is_number(self)) || (other.device() != out.device() && !is_number(other))) {
    return false;
  }
  if (self.is_sparse() && other.is_sparse()) {
    return self.sizes() == other.sizes() && self.sparse_dim() == other.sparse_dim() && self.sparse_dim() > 0;
  }
  const Tensor& sparse = self.is_sparse() ? self : other;
  const Tensor& dense = self.is_sparse() ? other : self;
  return sparse.is_sparse() && dense.layout() == at::kStrided && sparse.sparse_dim() > 0 &&
      at::is_expandable_to(dense.sizes(), sparse.sizes());
}

Tensor product_with_dense(const Tensor& sparse, const Tensor& dense, at::ScalarType common) {
  Tensor factors = dense;
  if (dense.dim() != 0) {
    c10::List<std::optional<Tensor>> indices;
    for (const Tensor& row : sparse._indices().unbind(0)) {
      indices.push_back(row);
    }
    factors = at::index(dense.expand(sparse.sizes()), indices).to(common);
  }
  const Tensor values = sparse._values().to(common).mul(factors);
  return at::_sparse_coo_tensor_unsafe(
      sparse._indices(), values, sparse.sizes(), sparse.options().dtype(common), sparse.is_coalesced());
}

// The elements that both have.
Tensor product_of_sparse(const Tensor& self, const Tensor& other, at::ScalarType common) {
  const Tensor first = coalesce(self), second = coalesce(other);
  const at::IntArrayRef sizes = sparse_sizes(self);
  Tensor indices = first._indices(), values = first._values().to(common);
  if (first._nnz() == 0 || second._nnz() == 0) {
    indices = indices.narrow(1, 0, 0);
    values = values.narrow(0, 0, 0);
  } else {
    const Search search(places(second._indices(), sizes), places(indices, sizes));
    const Tensor kept = at::nonzero(search.matches).view(-1);
    indices = indices.index_select(1, kept);
    values = values.index_select(0, kept).mul_(
        second._values().to(common).index_select(0, search.found.index_select(0, kept)));
  }
  return at::_sparse_coo_tensor_unsafe(indices, values, self.sizes(), self.options().dtype(common), true);
}

Tensor& mul_out(const Tensor& self, const Tensor& other, Tensor& out) {
  if (!product_served(self, other, out)) {
    return declined<Tensor&, const Tensor&, const Tensor&, Tensor&>(
        DispatchKey::SparsePrivateUse1, "aten::mul", "out", self, other, out);
  }
  const at::ScalarType common = at::result_type(self, other);
  if (self.is_sparse() && other.is_sparse()) {
    return assign(out, product_of_sparse(self, other, common));
  }
  return assign(
      out, self.is_sparse() ? product_with_dense(self, other, common) : product_with_dense(other, self, common));
}

// ---- selection and products of matrices: each element is repeated `counts` times

// For repeated elements: the number of the element, and the number of the repetition.
struct Repetitions {
  Tensor element, number;

  explicit Repetitions(const Tensor& counts) {
    const Tensor ends = counts.cumsum(0);
    const int64_t total = counts.numel() == 0 ? 0 : ends[-1].item<int64_t>();
    element = at::repeat_interleave(at::arange(counts.numel(), counts.options()), counts, 0, total);
    number = at::arange(total, counts.options()).sub_(ends.sub(counts).index_select(0, element));
  }
};

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  const int64_t wrapped = dim < 0 ? dim + self.dim() : dim;
  if (wrapped < 0 || wrapped >= self.dim() || index.dim() != 1 || index.layout() != at::kStrided ||
      index.device() != self.device() || (index.scalar_type() != at::kLong && index.scalar_type() != at::kInt) ||
      index.numel() == 0 || self._nnz() == 0) {
    return declined<Tensor, const Tensor&, int64_t, const Tensor&>(
        DispatchKey::SparsePrivateUse1, "aten::index_select", "", self, dim, index);
  }
  at::DimVector sizes(self.sizes());
  sizes[static_cast<size_t>(wrapped)] = index.numel();
  if (wrapped >= self.sparse_dim()) {
    const Tensor values = self._values().index_select(wrapped - self.sparse_dim() + 1, index);
    return at::_sparse_coo_tensor_unsafe(self._indices(), values, sizes, self.options(), self.is_coalesced());
  }
  const int64_t size = self.size(wrapped);
  const Tensor wanted = at::where(index.lt(0), index.add(size), index).to(at::kLong);
  TORCH_CHECK_INDEX(
      wanted.ge(0).logical_and(wanted.lt(size)).all().item<bool>(),
      "index_select(): an index is out of range for dimension ", wrapped, " with size ", size);
  const auto [sorted, order] = wanted.sort();
  const Tensor row = self._indices().select(0, wrapped).contiguous();
  const Tensor begin = at::searchsorted(sorted, row, /*out_int32=*/false, /*right=*/false);
  const Tensor end = at::searchsorted(sorted, row, /*out_int32=*/false, /*right=*/true);
  const Repetitions kept(end.sub(begin));
  const Tensor indices = self._indices().index_select(1, kept.element);
  indices.select(0, wrapped).copy_(order.index_select(0, begin.index_select(0, kept.element).add_(kept.number)));
  return at::_sparse_coo_tensor_unsafe(indices, self._values().index_select(0, kept.element), sizes, self.options());
}

bool are_matrices(const Tensor& self, const Tensor& other) {
  const auto is_matrix = [](const Tensor& tensor) {
    return tensor.is_sparse() && tensor.sparse_dim() == 2 && tensor.dense_dim() == 0;
  };
  return is_matrix(self) && is_matrix(other) && self.device() == other.device() && self.size(1) == other.size(0) &&
      self.scalar_type() == other.scalar_type();
}

// Each element of the first matrix meets a row of the second one; equal places are added.
Tensor matmul_of_sparse(const Tensor& self, const Tensor& other) {
  if (!are_matrices(self, other)) {
    return declined<Tensor, const Tensor&, const Tensor&>(
        DispatchKey::SparsePrivateUse1, "aten::_sparse_sparse_matmul", "", self, other);
  }
  if (self._nnz() == 0 || other._nnz() == 0) {
    return at::_sparse_coo_tensor_unsafe(
        self._indices().narrow(1, 0, 0), self._values().narrow(0, 0, 0), {self.size(0), other.size(1)}, self.options(),
        true);
  }
  const Tensor first = coalesce(self), second = coalesce(other);
  const Tensor pointers = at::_convert_indices_from_coo_to_csr(second._indices().select(0, 0), second.size(0));
  const Tensor inner = first._indices().select(0, 1);
  const Tensor begin = pointers.index_select(0, inner), end = pointers.index_select(0, inner.add(1));
  const Repetitions terms(end.sub(begin));
  const Tensor met = begin.index_select(0, terms.element).add_(terms.number);
  const Tensor indices = at::stack(
      {first._indices().select(0, 0).index_select(0, terms.element),
       second._indices().select(0, 1).index_select(0, met)});
  const Tensor values = first._values().index_select(0, terms.element).mul_(second._values().index_select(0, met));
  return coalesce(at::_sparse_coo_tensor_unsafe(indices, values, {self.size(0), other.size(1)}, self.options()));
}

// The elements of a sparse tensor at the places of a mask, 0 where there are none.
Tensor sparse_mask(const Tensor& self, const Tensor& mask) {
  if (self.layout() == at::kStrided) {
    return at::native::sparse_mask(self, mask); // composed of operators
  }
  if (!mask.is_sparse() || self.device() != mask.device() || self.sizes() != mask.sizes() ||
      self.sparse_dim() != mask.sparse_dim() || self.sparse_dim() == 0) {
    return declined<Tensor, const Tensor&, const Tensor&>(
        DispatchKey::SparsePrivateUse1, "aten::sparse_mask", "", self, mask);
  }
  const Tensor from = coalesce(self);
  at::DimVector shape(from._values().sizes());
  shape[0] = mask._nnz();
  Tensor values = at::zeros(shape, from._values().options());
  if (from._nnz() != 0 && mask._nnz() != 0) {
    const at::IntArrayRef sizes = sparse_sizes(self);
    const Search search(places(from._indices(), sizes), places(mask._indices(), sizes));
    at::DimVector ones(shape.size(), 1);
    ones[0] = mask._nnz();
    values = at::where(search.matches.view(ones), from._values().index_select(0, search.found), values);
  }
  return at::_sparse_coo_tensor_unsafe(
      mask._indices().clone(), values, mask.sizes(), self.options(), mask.is_coalesced());
}

// ---- softmax: elements that are not stored count as minus infinity

template <bool logarithm>
Tensor softmax(const Tensor& self, int64_t dim, bool half_to_float) {
  const int64_t wrapped = dim < 0 ? dim + self.dim() : dim;
  if (half_to_float || wrapped < 0 || wrapped >= self.dim() || !at::isFloatingType(self.scalar_type()) ||
      self._nnz() == 0) {
    return declined<Tensor, const Tensor&, int64_t, bool>(
        DispatchKey::SparsePrivateUse1, logarithm ? "aten::_sparse_log_softmax" : "aten::_sparse_softmax", "", self,
        dim, half_to_float);
  }
  const Tensor input = coalesce(self);
  const Tensor values = input._values();
  const auto made = [&](const Tensor& result) {
    return at::_sparse_coo_tensor_unsafe(input._indices(), result, input.sizes(), input.options(), true);
  };
  if (wrapped >= self.sparse_dim()) {
    const int64_t of_values = wrapped - self.sparse_dim() + 1;
    return made(logarithm ? values.log_softmax(of_values) : values.softmax(of_values));
  }
  at::DimVector sizes(sparse_sizes(input));
  sizes[static_cast<size_t>(wrapped)] = 1;
  const Tensor others = input._indices().clone();
  others.select(0, wrapped).zero_();
  const auto [unique, inverse, counts] = at::_unique2(places(others, sizes), true, true, false);
  const Tensor group = inverse.view(-1);
  at::DimVector shape(values.sizes());
  shape[0] = unique.numel();
  const Tensor largest = at::full(shape, -std::numeric_limits<double>::infinity(), values.options())
                             .index_reduce_(0, group, values, "amax");
  const Tensor shifted = values.sub(largest.index_select(0, group));
  const Tensor sum = sums(shifted.exp(), group, unique.numel()).index_select(0, group);
  return made(logarithm ? shifted.sub(sum.log()) : shifted.exp().div(sum));
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
  library.impl("_coalesce", TORCH_FN(coalesce));
  library.impl("_sparse_log_softmax", TORCH_FN(softmax<true>));
  library.impl("_sparse_softmax", TORCH_FN(softmax<false>));
  library.impl("_sparse_sparse_matmul", TORCH_FN(matmul_of_sparse));
  library.impl("add.out", TORCH_FN(add_out));
  library.impl("index_select", TORCH_FN(index_select));
  library.impl("mul.out", TORCH_FN(mul_out));
  library.impl("sparse_mask", TORCH_FN(sparse_mask));
}

} // namespace
} // namespace musa_ops_math::sparse
