// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_convert_indices_from_csr_to_coo.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/WrapDimMinimal.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <declined.h>
#include <guarded.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

// Reductions of CSR matrices: of their elements, and of the products in a row with a dense matrix (torch.sparse.mm with
// reduce, which torch.cuda does not have).

namespace musa_ops_math::sparse {
namespace {

using at::Tensor;

// Autocast would convert operands of the operators below, without autograd.
struct WithoutAutocast {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::autocast_dispatch_keyset};
};

// The elements of a CSR matrix with their coordinates.
struct Elements {
  Tensor rows, columns, values;
  int64_t count;

  explicit Elements(const Tensor& matrix) : values(matrix.values()), count(values.size(0)) {
    const Tensor coordinates =
        at::_convert_indices_from_csr_to_coo(matrix.crow_indices(), matrix.col_indices(), /*out_int32=*/false);
    rows = coordinates.select(0, 0);
    columns = coordinates.select(0, 1);
  }

  // The number of elements in the row of each element.
  Tensor row_sizes(const Tensor& matrix) const { return sizes_of_rows(matrix).index_select(0, rows).unsqueeze(1); }
  static Tensor sizes_of_rows(const Tensor& matrix) { return matrix.crow_indices().diff(); }
};

void check(const Tensor& self, const Tensor& other, std::string_view reduce) {
  TORCH_CHECK(
      self.layout() == at::kSparseCsr && self.dim() == 2 && other.layout() == at::kStrided && other.dim() == 2,
      "torch.sparse.mm with reduce expects a CSR matrix and a dense matrix, but got the layouts ", self.layout(),
      " and ", other.layout(), " with ", self.dim(), " and ", other.dim(), " dimensions");
  TORCH_CHECK(
      self.values().dim() == 1 && self.size(1) == other.size(0), "torch.sparse.mm with reduce: shapes ", self.sizes(),
      " and ", other.sizes(), " cannot be multiplied");
  TORCH_CHECK(
      self.scalar_type() == other.scalar_type(),
      "torch.sparse.mm with reduce: expected matrices of one dtype, but got ", self.scalar_type(), " and ",
      other.scalar_type());
  TORCH_CHECK(
      reduce == "sum" || reduce == "mean" || reduce == "amax" || reduce == "amin",
      "torch.sparse.mm: reduce must be sum, mean, amax or amin, but is ", reduce);
}

std::tuple<Tensor, Tensor> reduce_products(const Tensor& self, const Tensor& other, std::string_view reduce) {
  const WithoutAutocast guard;
  check(self, other, reduce);
  const at::TensorOptions places = other.options().dtype(at::kLong);
  if (reduce == "sum" || reduce == "mean") {
    Tensor sum = at::mm(self, other);
    if (reduce == "mean") {
      sum = sum.div(Elements::sizes_of_rows(self).clamp_min(1).unsqueeze(1));
    }
    return {sum.to(other.scalar_type()), at::empty({0}, places)};
  }
  const Elements elements(self);
  const Tensor products = elements.values.unsqueeze(1).mul(other.index_select(0, elements.columns));
  const Tensor rows = elements.rows.unsqueeze(1).expand(products.sizes());
  const Tensor out = at::zeros({self.size(0), other.size(1)}, other.options())
                         .scatter_reduce(0, rows, products, c10::string_view(reduce), /*include_self=*/false);
  if (!self.requires_grad() && !other.requires_grad()) {
    return {out, at::empty({0}, places)}; // only the gradient needs the places
  }
  // The first element with the chosen product; a row without elements has the number of elements.
  const Tensor chosen = out.index_select(0, elements.rows);
  const Tensor same = products.eq(chosen).logical_or_(products.isnan().logical_and_(chosen.isnan()));
  const Tensor numbers = at::arange(elements.count, places).unsqueeze(1).expand(products.sizes());
  const Tensor none = at::full({}, elements.count, places);
  const Tensor first =
      at::full(out.sizes(), elements.count, places).scatter_reduce(0, rows, at::where(same, numbers, none), "amin");
  return {out, first};
}

std::tuple<Tensor, Tensor> reduce_products_backward(
    const Tensor& self, const Tensor& grad_out, const Tensor& weight, std::string_view reduce, const Tensor& arg_out,
    std::array<bool, 2> output_mask) {
  const WithoutAutocast guard;
  const Elements elements(self);
  // Sums in half types would round each time.
  const at::ScalarType wide = at::toOpMathType(weight.scalar_type());
  const Tensor factors = elements.values.to(wide), dense = weight.to(wide);
  Tensor grad_values, grad_weight;
  if (reduce == "sum" || reduce == "mean") {
    Tensor grads = grad_out.to(wide).index_select(0, elements.rows);
    if (reduce == "mean") {
      grads = grads.div(elements.row_sizes(self));
    }
    if (output_mask[0]) {
      grad_values = grads.mul(dense.index_select(0, elements.columns)).sum(1);
    }
    if (output_mask[1]) {
      grad_weight =
          at::zeros(weight.sizes(), dense.options()).index_add_(0, elements.columns, grads.mul(factors.unsqueeze(1)));
    }
  } else {
    // One place more, for rows without elements, which have no gradient.
    const Tensor columns = at::constant_pad_nd(elements.columns, {0, 1}), padded = at::constant_pad_nd(factors, {0, 1});
    const Tensor grads = grad_out.to(wide).masked_fill(arg_out.eq(elements.count), 0);
    const Tensor flat = arg_out.reshape(-1), places = columns.index_select(0, flat).view(arg_out.sizes());
    if (output_mask[0]) {
      const Tensor products = weight.size(0) == 0 ? grads : grads.mul(dense.gather(0, places));
      grad_values = at::zeros({elements.count + 1}, factors.options())
                        .index_add_(0, flat, products.reshape(-1))
                        .narrow(0, 0, elements.count);
    }
    if (output_mask[1]) {
      grad_weight = at::zeros(weight.sizes(), dense.options());
      if (weight.size(0) != 0) {
        grad_weight.scatter_add_(0, places, grads.mul(padded.index_select(0, flat).view(arg_out.sizes())));
      }
    }
  }
  if (grad_weight.defined()) {
    grad_weight = grad_weight.to(weight.scalar_type());
  }
  Tensor grad_self;
  if (output_mask[0]) {
    grad_self = at::_sparse_compressed_tensor_unsafe(
        self.crow_indices(), self.col_indices(), grad_values.to(self.scalar_type()), self.sizes(), self.options());
  }
  return {grad_self, grad_weight};
}

// The sum or product of the elements of a CSR matrix along its rows (dimension 1), its columns (0), or both, as a CSR
// matrix with one element wherever there was any.
Tensor reduce_elements(
    const Tensor& self, at::IntArrayRef dims, bool keepdim, std::optional<at::ScalarType> dtype, bool product) {
  TORCH_CHECK(keepdim, "reductions of CSR tensors without keepdim are not supported");
  const WithoutAutocast guard;
  TORCH_CHECK(
      self.dim() == 2 && self.values().dim() == 1, "reductions of CSR tensors take one matrix of numbers, but got ",
      self.dim(), " dimensions, and elements of ", self.values().dim() - 1);
  const Elements elements(self);
  const at::ScalarType given = self.scalar_type();
  const at::ScalarType type = dtype.value_or(at::isIntegralType(given, /*includeBool=*/true) ? at::kLong : given);
  const at::ScalarType index_type = self.crow_indices().scalar_type();
  std::array<bool, 2> reduced{};
  for (const int64_t dim : dims) {
    bool& here = reduced[static_cast<size_t>(c10::maybe_wrap_dim(dim, 2))];
    TORCH_CHECK(!here, "dimension ", dim, " appears more than once in the list of dimensions");
    here = true;
  }
  if (dims.empty()) {
    reduced = {true, true};
  }
  // The number of each element's place in the result among those with elements.
  const int64_t places = reduced[0] && reduced[1] ? 1 : self.size(reduced[0] ? 1 : 0);
  const Tensor place = reduced[0] && reduced[1] ? at::zeros_like(elements.rows)
      : reduced[0]                              ? elements.columns
                                                : elements.rows;
  const Tensor occupied = at::zeros({places}, place.options()).index_fill_(0, place, 1);
  const Tensor ends = occupied.cumsum(0), number = ends.sub(1).index_select(0, place);
  const Tensor found = occupied.nonzero().squeeze(1);
  const Tensor given_values = elements.values.to(at::toOpMathType(type)); // sums in half types would round each time
  const Tensor found_values = product
      ? at::ones({found.size(0)}, given_values.options()).scatter_reduce(0, number, given_values, "prod")
      : at::zeros({found.size(0)}, given_values.options()).index_add_(0, number, given_values);
  const Tensor all = at::full({1}, found.size(0), place.options());
  const Tensor pointers = at::constant_pad_nd(reduced[0] ? all : ends, {1, 0});
  const Tensor columns = reduced[1] ? at::zeros_like(found) : found;
  return at::_sparse_compressed_tensor_unsafe(
      pointers.to(index_type), columns.to(index_type), found_values.to(type),
      {reduced[0] ? 1 : self.size(0), reduced[1] ? 1 : self.size(1)}, self.options().dtype(type));
}

Tensor sum_elements(const Tensor& self, at::IntArrayRef dims, bool keepdim, std::optional<at::ScalarType> dtype) {
  return reduce_elements(self, dims, keepdim, dtype, /*product=*/false);
}
Tensor multiply_elements(const Tensor& self, at::IntArrayRef dims, bool keepdim, std::optional<at::ScalarType> dtype) {
  if (at::isComplexType(dtype.value_or(self.scalar_type()))) { // as torch.cuda, scatter_reduce takes real numbers
    return declined<Tensor, const Tensor&, at::IntArrayRef, bool, std::optional<at::ScalarType>>(
        c10::DispatchKey::SparseCsrPrivateUse1, "aten::_sparse_csr_prod", "dim_dtype", self, dims, keepdim, dtype);
  }
  return reduce_elements(self, dims, keepdim, dtype, /*product=*/true);
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, library) {
  library.impl("_sparse_csr_prod.dim_dtype", TORCH_FN(Guarded<&multiply_elements>::call));
  library.impl("_sparse_csr_sum.dim_dtype", TORCH_FN(Guarded<&sum_elements>::call));
  library.impl("_sparse_mm_reduce_impl", TORCH_FN(Guarded<&reduce_products>::call));
  library.impl("_sparse_mm_reduce_impl_backward", TORCH_FN(Guarded<&reduce_products_backward>::call));
}

} // namespace
} // namespace musa_ops_math::sparse
