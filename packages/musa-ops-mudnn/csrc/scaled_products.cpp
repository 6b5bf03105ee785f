// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Products of 8-bit floats with scales: of a matrix, of each row or column, or of each tile of 128 elements along k.
#include <ATen/BlasBackend.h>
#include <ATen/native/GroupedMMUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/repeat_interleave.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSASyncDebugMode.h>
#include <musa_runtime/graph_capture.h>
#include <musa_runtime/mudnn.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "families.h"
#include "support/call.h"
#include "support/indices.h"
#include "support/matrices.h"
#include "support/predicates.h"

namespace musa_ops_mudnn {
namespace {

using at::blas::ScalingType;

inline constexpr Dtypes fp8_types = one(at::kFloat8_e4m3fn) | one(at::kFloat8_e5m2);
inline constexpr int64_t kScaleTile = 128;

bool has_fp8(c10::DeviceIndex device) {
  const musaDeviceProp& properties = c10::musa::device_properties(device);
  return properties.major * 10 + properties.minor >= 31;
}

// Rows of a, and columns of b: both have adjacent elements along k. torch.cuda takes no other order on sm_90.
bool adjacent_along_k(const at::Tensor& a, const at::Tensor& b) {
  return matrix_order(a) == MatrixOrder::Rows && is_stored_in_rows(b.size(1), b.size(0), b.stride(1), b.stride(0));
}

dnn::Tensor describe_scale(const at::Tensor& scale) { return describe_as(scale, {scale.numel()}, {1}, kRead); }

// Scales of the matrices, or of each row of a and each column of b.
void set_scales(dnn::MatMulLtParam& scales, const dnn::Tensor& scale_a, const dnn::Tensor& scale_b) {
  check(scales.SetScale(scale_a, scale_b, dnn::Tensor(), dnn::Tensor()), "MatMulLtParam::SetScale");
}

// Both matrices are stored in rows along k.
void set_product_along_k(dnn::BatchMatMul& op, at::ScalarType dtype) {
  check(op.SetComputeMode(compute_mode(dtype)), "BatchMatMul::SetComputeMode");
  check(op.SetTranspose(false, true), "BatchMatMul::SetTranspose");
}

// Computes out = a * b + bias, with the scales in the parameter. adjacent_along_k(a, b) must be true.
void multiply_scaled(
    const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const std::optional<at::Tensor>& bias,
    const dnn::MatMulLtParam& scales) {
  if (!takes_result(out)) {
    const at::Tensor result = at::empty(out.sizes(), out.options());
    multiply_scaled(result, a, b, bias, scales);
    out.copy_(result);
    return;
  }
  dnn::BatchMatMul op;
  set_product_along_k(op, a.scalar_type());
  const Operand row = contiguous_or_none(bias);
  const OnDevice on(out);
  dnn::Tensor result = describe_stored(out, MatrixOrder::Rows);
  check(
      op.RunLt(
          on.handle(), result, describe_stored(a, MatrixOrder::Rows, kRead),
          describe_stored(b, MatrixOrder::Columns, kRead), dnn::Tensor(), operand(row), scales, on.workspace()),
      "BatchMatMul::RunLt", {&out, &a, &b, &*row});
}

// ---- _scaled_mm: a scale of one element is for the matrix, a longer one for each row or column

// Whether it is a single scale, or one for each of `count` rows or columns.
bool is_scale(const at::Tensor& scale, int64_t count) {
  return scale.numel() == 1 || (scale.dim() == 2 && scale.numel() == count && scale.is_contiguous());
}

bool scaled_mm_served(
    const at::Tensor& self, const at::Tensor& other, const at::Tensor& scale_a, const at::Tensor& scale_b,
    const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& scale_result,
    std::optional<at::ScalarType> out_dtype, bool /*use_fast_accum*/) {
  const bool biased = given(bias);
  const bool scales_result = given(scale_result);
  return serves<fp8_types>(self, other) && serves<one(at::kFloat)>(scale_a, scale_b) &&
      serves<reduced_types | one(at::kFloat)>(bias) && self.dim() == 2 && other.dim() == 2 &&
      self.size(1) == other.size(0) && out_dtype.has_value() && contains(matrix_types, *out_dtype) && !scales_result &&
      !(self.scalar_type() == at::kFloat8_e5m2 && other.scalar_type() == at::kFloat8_e5m2) &&
      adjacent_along_k(self, other) &&
      // torch requires multiples of 16, and the same kind for both scales.
      self.size(1) % 16 == 0 && other.size(1) % 16 == 0 && is_scale(scale_a, self.size(0)) &&
      is_scale(scale_b, other.size(1)) && (scale_a.numel() == 1) == (scale_b.numel() == 1) &&
      (!biased || (bias->dim() == 1 && bias->size(0) == other.size(1) && bias->scalar_type() == *out_dtype)) &&
      scale_a.device() == self.device() && scale_b.device() == self.device() &&
      (!biased || bias->device() == self.device()) && has_fp8(self.device().index());
}

at::Tensor& scaled_mm_out(
    const at::Tensor& self, const at::Tensor& other, const at::Tensor& scale_a, const at::Tensor& scale_b,
    const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& /*scale_result*/,
    std::optional<at::ScalarType> /*out_dtype*/, bool /*use_fast_accum*/, at::Tensor& out) {
  dnn::MatMulLtParam scales;
  set_scales(scales, describe_scale(scale_a), describe_scale(scale_b));
  multiply_scaled(resized(out, {self.size(0), other.size(1)}), self, other, bias, scales);
  return out;
}

bool scaled_mm_out_served(
    const at::Tensor& self, const at::Tensor& other, const at::Tensor& scale_a, const at::Tensor& scale_b,
    const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& scale_result,
    std::optional<at::ScalarType> out_dtype, bool use_fast_accum, at::Tensor& out) {
  return scaled_mm_served(self, other, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum) &&
      takes_out_of(out, self, *out_dtype);
}

at::Tensor scaled_mm(
    const at::Tensor& self, const at::Tensor& other, const at::Tensor& scale_a, const at::Tensor& scale_b,
    const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& scale_result,
    std::optional<at::ScalarType> out_dtype, bool use_fast_accum) {
  at::Tensor out = at::empty({self.size(0), other.size(1)}, self.options().dtype(*out_dtype));
  scaled_mm_out(self, other, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum, out);
  return out;
}

// ---- recipes of the operators _v2: the part of a factor that shares a scale
//
// These operators raise their own errors: torch's CPU kernels, which a call would reach otherwise, support fewer recipes.

using Recipes = std::pair<ScalingType, ScalingType>;

constexpr std::array<const char*, 6> recipe_names{"TensorWise",    "RowWise",        "BlockWise1x16",
                                                  "BlockWise1x32", "BlockWise1x128", "BlockWise128x128"};

const char* name_of(int64_t recipe) {
  const auto index = static_cast<size_t>(recipe);
  return index < recipe_names.size() ? recipe_names[index] : "an unknown recipe";
}
const char* name_of(ScalingType recipe) { return name_of(static_cast<int64_t>(recipe)); }

bool has_small_blocks(at::IntArrayRef recipes) {
  return std::any_of(recipes.begin(), recipes.end(), [](int64_t recipe) {
    return recipe == static_cast<int64_t>(ScalingType::BlockWise1x16) ||
        recipe == static_cast<int64_t>(ScalingType::BlockWise1x32);
  });
}

bool is_swizzled(at::IntArrayRef swizzles) {
  return std::any_of(swizzles.begin(), swizzles.end(), [](int64_t swizzle) { return swizzle != 0; });
}

// Returns the recipes of a and b. Raises NotImplementedError for those of other devices (MX and NVFP4, swizzled scales),
// ValueError for combinations that no device has.
Recipes find_recipes(
    at::ArrayRef<Recipes> supported, const char* description, at::TensorList scale_a, at::IntArrayRef recipe_a,
    at::IntArrayRef swizzle_a, at::TensorList scale_b, at::IntArrayRef recipe_b, at::IntArrayRef swizzle_b) {
  const auto message = [&] {
    std::ostringstream text;
    text << description << " It does not take";
    for (const int64_t recipe : recipe_a) {
      text << ' ' << name_of(recipe);
    }
    text << " with";
    for (const int64_t recipe : recipe_b) {
      text << ' ' << name_of(recipe);
    }
    text << (is_swizzled(swizzle_a) || is_swizzled(swizzle_b) ? ", swizzled." : ".");
    return text.str();
  };
  TORCH_CHECK_NOT_IMPLEMENTED(
      !has_small_blocks(recipe_a) && !has_small_blocks(recipe_b) && !is_swizzled(swizzle_a) && !is_swizzled(swizzle_b),
      message());
  TORCH_CHECK_VALUE(recipe_a.size() == 1 && recipe_b.size() == 1, message());
  TORCH_CHECK_VALUE(
      scale_a.size() == 1 && scale_b.size() == 1, "Expected one scale for each recipe, but got ", scale_a.size(),
      " for a and ", scale_b.size(), " for b.");
  const auto* found = std::find_if(supported.begin(), supported.end(), [&](const Recipes& recipes) {
    return static_cast<int64_t>(recipes.first) == recipe_a[0] && static_cast<int64_t>(recipes.second) == recipe_b[0];
  });
  TORCH_CHECK_VALUE(found != supported.end(), message());
  return *found;
}

// torch's CPU kernel takes these. On a device without 8-bit floats it does so on copies; other recipes are refused there.
bool has_recipe_of_cpu(at::IntArrayRef recipes) {
  return recipes.size() == 1 && recipes[0] <= static_cast<int64_t>(ScalingType::RowWise);
}

void require_fp8(const at::Tensor& self, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      has_fp8(self.device().index()), name, " needs a device with 8-bit floats, mp_31 or newer.");
}

// Whether the kernels of the operators _v2 can take the arguments, or raise an error about them.
bool is_plain(const at::Tensor& tensor) {
  return tensor.is_privateuseone() && tensor.layout() == at::kStrided && !tensor.key_set().has_any(lazy_values);
}
bool is_plain(at::TensorList tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) { return is_plain(tensor); });
}
bool all_plain(
    const at::Tensor& self, const at::Tensor& other, at::TensorList scale_a, at::TensorList scale_b,
    const std::optional<at::Tensor>& bias) {
  return settings().enabled && is_plain(self) && is_plain(other) && is_plain(scale_a) && is_plain(scale_b) &&
      (!given(bias) || is_plain(*bias));
}

void require_same_device(const at::Tensor& self, const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(
      tensor.device() == self.device(), "Expected all tensors to be on the same device, but mat_a is on ",
      self.device(), " and ", name, " on ", tensor.device(), ".");
}

// ---- _scaled_mm_v2

int64_t tiles(int64_t size) { return (size + kScaleTile - 1) / kScaleTile; }

// `count` is the number of rows of a or of columns of b. torch's layout of the scales of tiles is cuBLAS's: those of
// 128x128 have k first, padded to a multiple of 4.
void require_scale(const at::Tensor& scale, bool of_a, ScalingType recipe, int64_t count, int64_t k) {
  using Shape = std::array<int64_t, 2>;
  const bool rowwise = recipe == ScalingType::RowWise;
  const Shape wanted = recipe == ScalingType::TensorWise ? Shape{1, 1}
      : rowwise                                          ? (of_a ? Shape{count, 1} : Shape{1, count})
      : recipe == ScalingType::BlockWise1x128            ? Shape{count, tiles(k)}
                                                         : Shape{(tiles(k) + 3) / 4 * 4, tiles(count)};
  const bool fits = recipe == ScalingType::TensorWise ? scale.numel() == 1
      : rowwise && !of_a                              ? scale.dim() == 2 && scale.numel() == count
                                                      : scale.sizes() == at::IntArrayRef(wanted);
  TORCH_CHECK_VALUE(
      fits && scale.scalar_type() == at::kFloat, "_scaled_mm_v2: scale_", of_a ? 'a' : 'b', " must have ",
      wanted[0] * wanted[1], " Float elements of shape ", at::IntArrayRef(wanted), " for ", name_of(recipe),
      ", but is ", scale.scalar_type(), scale.sizes(), ".");
}

// muDNN takes a matrix with one row for each row or column of the factor, or for each 128 of them, and one column for each
// tile along k, in any order of memory.
Operand tile_scale(const at::Tensor& scale, ScalingType recipe, int64_t k) {
  if (recipe == ScalingType::BlockWise1x128) {
    return matrix_order(scale) == MatrixOrder::Neither ? Operand(scale.contiguous()) : Operand::borrowed(scale);
  }
  at::Tensor grid = scale.narrow(0, 0, tiles(k)).t();
  return matrix_order(grid) == MatrixOrder::Neither ? grid.contiguous() : std::move(grid);
}

dnn::MatMulLtParam tile_scales(const Operand& scale_a, const Operand& scale_b) {
  dnn::MatMulLtParam result;
  check(
      result.SetScale(
          operand(scale_a), operand(scale_b), dnn::Tensor(), dnn::Tensor(), static_cast<int>(kScaleTile),
          /*scale_mn_major=*/false),
      "MatMulLtParam::SetScale");
  return result;
}

constexpr std::array<Recipes, 5> matrix_recipes{{
    {ScalingType::TensorWise, ScalingType::TensorWise},
    {ScalingType::RowWise, ScalingType::RowWise},
    {ScalingType::BlockWise1x128, ScalingType::BlockWise1x128},
    {ScalingType::BlockWise1x128, ScalingType::BlockWise128x128},
    {ScalingType::BlockWise128x128, ScalingType::BlockWise1x128},
}};

at::Tensor& scaled_mm_v2_out(
    const at::Tensor& self, const at::Tensor& other, at::TensorList scales_a, at::IntArrayRef recipe_a,
    at::IntArrayRef swizzle_a, at::TensorList scales_b, at::IntArrayRef recipe_b, at::IntArrayRef swizzle_b,
    const std::optional<at::Tensor>& bias, std::optional<at::ScalarType> out_dtype, at::IntArrayRef contraction_dim,
    bool /*use_fast_accum*/, at::Tensor& out) {
  const auto [left, right] = find_recipes(
      matrix_recipes,
      "_scaled_mm_v2 on musa takes float8 factors with float32 scales that are not swizzled: TensorWise or RowWise for "
      "both, or BlockWise1x128 for one and BlockWise1x128 or BlockWise128x128 for the other.",
      scales_a, recipe_a, swizzle_a, scales_b, recipe_b, swizzle_b);
  require_fp8(self, "_scaled_mm_v2");
  const bool tiled = left != ScalingType::TensorWise && left != ScalingType::RowWise;
  TORCH_CHECK_VALUE(
      self.dim() == 2 && other.dim() == 2 && self.size(1) == other.size(0),
      "_scaled_mm_v2 multiplies matrices (m, k) and (k, n), not ", self.sizes(), " and ", other.sizes(), ".");
  TORCH_CHECK_VALUE(
      contraction_dim.empty() || contraction_dim == at::IntArrayRef({-1, -2}) ||
          contraction_dim == at::IntArrayRef({1, 0}),
      "_scaled_mm_v2 contracts the dimensions (-1, -2), not ", contraction_dim, ".");
  const int64_t m = self.size(0);
  const int64_t n = other.size(1);
  const int64_t k = self.size(1);
  TORCH_CHECK_VALUE(
      k % 16 == 0 && n % 16 == 0, "_scaled_mm_v2: k and n must be divisible by 16, but the factors are ", self.sizes(),
      " and ", other.sizes(), ".");
  const Dtypes factors = one(self.scalar_type()) | one(other.scalar_type());
  TORCH_CHECK_VALUE(
      (factors & ~fp8_types) == 0 && factors != one(at::kFloat8_e5m2) && (!tiled || factors == one(at::kFloat8_e4m3fn)),
      "_scaled_mm_v2 takes float8_e4m3fn factors, or one of float8_e5m2 if no scale is of a block, not ",
      self.scalar_type(), " and ", other.scalar_type(), ".");
  const at::ScalarType dtype = out.scalar_type();
  TORCH_CHECK_VALUE(
      out_dtype.value_or(dtype) == dtype, "out_dtype is ", *out_dtype, ", but out has the dtype ", dtype, ".");
  TORCH_CHECK_VALUE(
      contains(left == ScalingType::TensorWise ? matrix_types | fp8_types : matrix_types, dtype),
      "_scaled_mm_v2 returns bfloat16, float16 or float32, or float8 for TensorWise, not ", dtype, ".");
  if (given(bias)) {
    TORCH_CHECK_VALUE(dtype != at::kFloat, "Bias is not supported when out_dtype is set to Float32");
    TORCH_CHECK_VALUE(
        bias->dim() == 1 && bias->size(0) == n && contains(reduced_types, bias->scalar_type()) &&
            (bias->scalar_type() == dtype || contains(fp8_types, dtype)),
        "_scaled_mm_v2: the bias must have ", n, " elements of the result's dtype, ", dtype, ", but is ",
        bias->scalar_type(), bias->sizes(), ".");
    require_same_device(self, *bias, "the bias");
  }
  const at::Tensor& scale_a = scales_a[0];
  const at::Tensor& scale_b = scales_b[0];
  require_same_device(self, other, "mat_b");
  require_same_device(self, scale_a, "scale_a");
  require_same_device(self, scale_b, "scale_b");
  require_same_device(self, out, "out");
  require_scale(scale_a, /*of_a=*/true, left, m, k);
  require_scale(scale_b, /*of_a=*/false, right, n, k);

  resized(out, {m, n});
  if (out.numel() == 0) {
    return out;
  }
  if (k == 0) {
    return out.zero_();
  }
  TORCH_CHECK(
      adjacent_along_k(self, other),
      "_scaled_mm_v2 multiplies a row-major and a column-major matrix, but the strides are ", self.strides(), " and ",
      other.strides(), ".\nFix: mat_b.t().contiguous().t()");
  if (!tiled) {
    const Operand a = contiguous(scale_a);
    const Operand b = contiguous(scale_b);
    dnn::MatMulLtParam scales;
    set_scales(scales, describe_scale(a), describe_scale(b));
    multiply_scaled(out, self, other, bias, scales);
    return out;
  }
  Operand a = tile_scale(scale_a, left, k);
  if (left == ScalingType::BlockWise128x128) {
    // Known callers give blocks of 128 rows only for b, so a gets a scale for each row.
    a = Operand(at::repeat_interleave(*a, kScaleTile, 0).narrow(0, 0, m));
  }
  const Operand b = tile_scale(scale_b, right, k);
  multiply_scaled(out, self, other, bias, tile_scales(a, b));
  return out;
}

bool scaled_mm_v2_served(
    const at::Tensor& self, const at::Tensor& other, at::TensorList scale_a, at::IntArrayRef recipe_a,
    at::IntArrayRef /*swizzle_a*/, at::TensorList scale_b, at::IntArrayRef recipe_b, at::IntArrayRef /*swizzle_b*/,
    const std::optional<at::Tensor>& bias, std::optional<at::ScalarType> /*out_dtype*/,
    at::IntArrayRef /*contraction_dim*/, bool /*use_fast_accum*/) {
  return all_plain(self, other, scale_a, scale_b, bias) &&
      (has_fp8(self.device().index()) || !has_recipe_of_cpu(recipe_a) || !has_recipe_of_cpu(recipe_b));
}

bool scaled_mm_v2_out_served(
    const at::Tensor& self, const at::Tensor& other, at::TensorList scale_a, at::IntArrayRef recipe_a,
    at::IntArrayRef swizzle_a, at::TensorList scale_b, at::IntArrayRef recipe_b, at::IntArrayRef swizzle_b,
    const std::optional<at::Tensor>& bias, std::optional<at::ScalarType> out_dtype, at::IntArrayRef contraction_dim,
    bool use_fast_accum, at::Tensor& out) {
  return is_plain(out) &&
      scaled_mm_v2_served(
             self, other, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype, contraction_dim,
             use_fast_accum);
}

at::Tensor scaled_mm_v2(
    const at::Tensor& self, const at::Tensor& other, at::TensorList scale_a, at::IntArrayRef recipe_a,
    at::IntArrayRef swizzle_a, at::TensorList scale_b, at::IntArrayRef recipe_b, at::IntArrayRef swizzle_b,
    const std::optional<at::Tensor>& bias, std::optional<at::ScalarType> out_dtype, at::IntArrayRef contraction_dim,
    bool use_fast_accum) {
  at::Tensor out = at::empty({0}, self.options().dtype(out_dtype.value_or(self.scalar_type())));
  return scaled_mm_v2_out(
      self, other, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype, contraction_dim,
      use_fast_accum, out);
}

// ---- grouped products, with a scale for each row of a and each column of b
//
// One call for each group: muDNN's GroupedMatMul is not in every version, and takes shapes on the host just the same.
// A matrix of two dimensions holds all groups, one after the other along the dimension that they divide; `offs` holds
// their ends. One of three dimensions holds a matrix for each group.

// Describes a part of the memory of a tensor: `offset` elements from its start.
dnn::Tensor describe_part(
    void* data, const at::Tensor& tensor, int64_t offset, at::IntArrayRef sizes, at::IntArrayRef strides) {
  dnn::Tensor result;
  check(
      result.SetAddr(static_cast<char*>(data) + offset * static_cast<int64_t>(tensor.element_size())),
      "Tensor::SetAddr");
  check(result.SetType(type_of(tensor.scalar_type())), "Tensor::SetType");
  check(result.SetNdInfo(static_cast<int64_t>(sizes.size()), sizes.data(), strides.data()), "Tensor::SetNdInfo");
  return result;
}
dnn::Tensor describe_part(const at::Tensor& tensor, int64_t offset, at::IntArrayRef sizes, at::IntArrayRef strides) {
  return describe_part(const_cast<void*>(tensor.const_data_ptr()), tensor, offset, sizes, strides);
}

void require_group_scale(
    const at::Tensor& scale, const char* name, const at::Tensor& factor, int64_t count, int64_t groups) {
  const bool all_groups = factor.dim() == 2;
  const bool fits = all_groups
      ? scale.dim() == 1 && scale.size(0) == count && scale.is_contiguous()
      : scale.dim() == 2 && scale.size(0) == groups && scale.size(1) == count && scale.stride(1) == 1;
  TORCH_CHECK(
      fits, "_scaled_grouped_mm: ", name, " must be a contiguous tensor of shape ",
      all_groups ? at::DimVector{count} : at::DimVector{groups, count}, ", but has the shape ", scale.sizes(),
      " and the strides ", scale.strides(), ".");
}

at::Tensor multiply_groups(
    const at::Tensor& a, const at::Tensor& b, const at::Tensor& scale_a, const at::Tensor& scale_b,
    const std::optional<at::Tensor>& offs, const std::optional<at::Tensor>& bias,
    std::optional<at::ScalarType> out_dtype) {
  require_fp8(a, "_scaled_grouped_mm");
  TORCH_CHECK_VALUE(
      a.scalar_type() == at::kFloat8_e4m3fn && b.scalar_type() == at::kFloat8_e4m3fn,
      "_scaled_grouped_mm takes float8_e4m3fn factors, not ", a.scalar_type(), " and ", b.scalar_type(), ".");
  TORCH_CHECK_VALUE(
      (a.dim() == 2 || a.dim() == 3) && (b.dim() == 2 || b.dim() == 3),
      "_scaled_grouped_mm takes factors of 2 or 3 dimensions, not ", a.sizes(), " and ", b.sizes(), ".");
  const bool a_of_groups = a.dim() == 3;
  const bool b_of_groups = b.dim() == 3;
  TORCH_CHECK_VALUE(!at::native::check_valid_strides_and_return_transposed(a), "Expected mat_a not to be transposed.");
  TORCH_CHECK_VALUE(at::native::check_valid_strides_and_return_transposed(b), "Expected mat_b to be transposed.");
  TORCH_CHECK_VALUE(
      a.size(-1) == b.size(-2) && a.size(-1) % 16 == 0 && b.size(-1) % 16 == 0,
      "_scaled_grouped_mm takes factors (m, k) and (k, n), of which k and n are divisible by 16, not ", a.sizes(),
      " and ", b.sizes(), ".");
  TORCH_CHECK_VALUE(!given(bias), "Bias not supported yet");
  TORCH_CHECK_VALUE(
      given(offs) == !(a_of_groups && b_of_groups), "offs must be given if a factor has 2 dimensions, and only then.");
  TORCH_CHECK_VALUE(
      !given(offs) || (offs->dim() == 1 && offs->scalar_type() == at::kInt), "offs must be a vector of int32.");
  TORCH_CHECK_VALUE(
      scale_a.scalar_type() == at::kFloat && scale_b.scalar_type() == at::kFloat,
      "_scaled_grouped_mm on musa takes float32 scales, not ", scale_a.scalar_type(), " and ", scale_b.scalar_type(),
      ".");
  TORCH_CHECK_VALUE(
      out_dtype.value_or(at::kBFloat16) == at::kBFloat16, "_scaled_grouped_mm returns bfloat16, not ", *out_dtype, ".");
  require_same_device(a, b, "mat_b");
  require_same_device(a, scale_a, "scale_a");
  require_same_device(a, scale_b, "scale_b");
  if (given(offs)) {
    require_same_device(a, *offs, "offs");
  }

  const at::Tensor out = at::native::create_grouped_gemm_output_tensor(a, b, offs, at::kBFloat16);
  const int64_t groups = a_of_groups ? a.size(0) : b_of_groups ? b.size(0) : offs->size(0);
  int64_t m = a.size(-2);
  int64_t n = b.size(-1);
  int64_t k = a.size(-1);
  const int64_t repeated = a_of_groups || b_of_groups ? 1 : groups;
  require_group_scale(scale_a, "scale_a", a, m * repeated, groups);
  require_group_scale(scale_b, "scale_b", b, n * repeated, groups);
  if (out.numel() == 0 || k == 0) {
    return out.zero_();
  }

  // The dimension that is divided, if there is one.
  int64_t& divided = b_of_groups ? m : a_of_groups ? n : k;
  const int64_t all = divided;
  std::vector<int32_t> ends;
  if (given(offs)) {
    if (musa_runtime::capturing()) {
      musa_runtime::refuse_to_capture("_scaled_grouped_mm", "it reads the offsets on the host");
    }
    c10::musa::check_sync("_scaled_grouped_mm"); // the shapes of the groups depend on the data
    ends = values_of<int32_t>(offs->contiguous());
  }
  dnn::BatchMatMul op;
  set_product_along_k(op, a.scalar_type());
  const OnDevice on(out);
  void* const data = out.mutable_data_ptr();
  int64_t begin = 0;
  for (int64_t group = 0; group < groups; ++group) {
    int64_t end = 0;
    if (!ends.empty()) {
      end = ends[static_cast<size_t>(group)];
      TORCH_CHECK(
          begin <= end && end <= all, "offs must not decrease, nor exceed the size of the dimension, ", all,
          ", but the values ", begin, " and ", end, " follow each other.");
      divided = end - begin;
    }
    if (k == 0) {
      out.select(0, group).zero_();
    } else if (m > 0 && n > 0) {
      const int64_t at_a = a_of_groups ? group * a.stride(0) : begin * a.stride(b_of_groups ? 0 : 1);
      const int64_t at_b = b_of_groups ? group * b.stride(0) : begin * b.stride(a_of_groups ? 1 : 0);
      const int64_t at_out =
          a_of_groups == b_of_groups ? group * out.stride(0) : begin * out.stride(b_of_groups ? 0 : 1);
      const int64_t at_scale_a = a_of_groups ? group * scale_a.stride(0) : b_of_groups ? begin : group * m;
      const int64_t at_scale_b = b_of_groups ? group * scale_b.stride(0) : a_of_groups ? begin : group * n;
      dnn::MatMulLtParam scales;
      set_scales(scales, describe_part(scale_a, at_scale_a, {m}, {1}), describe_part(scale_b, at_scale_b, {n}, {1}));
      dnn::Tensor result = describe_part(data, out, at_out, {m, n}, {out.stride(-2), 1});
      check(
          op.RunLt(
              on.handle(), result, describe_part(a, at_a, {m, k}, {a.stride(-2), 1}),
              describe_part(b, at_b, {n, k}, {b.stride(-1), 1}), dnn::Tensor(), dnn::Tensor(), scales, on.workspace()),
          "BatchMatMul::RunLt", {&out, &a, &b, &scale_a, &scale_b});
    }
    begin = end;
  }
  return out;
}

bool groups_served(
    const at::Tensor& self, const at::Tensor& other, at::TensorList scale_a, at::TensorList scale_b,
    const std::optional<at::Tensor>& offs, const std::optional<at::Tensor>& bias) {
  return all_plain(self, other, scale_a, scale_b, bias) && (!given(offs) || is_plain(*offs));
}

at::Tensor scaled_grouped_mm(
    const at::Tensor& self, const at::Tensor& other, const at::Tensor& scale_a, const at::Tensor& scale_b,
    const std::optional<at::Tensor>& offs, const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& scale_result, std::optional<at::ScalarType> out_dtype, bool /*use_fast_accum*/) {
  TORCH_CHECK_VALUE(!given(scale_result), "Scale result not supported yet");
  return multiply_groups(self, other, scale_a, scale_b, offs, bias, out_dtype);
}

bool scaled_grouped_mm_served(
    const at::Tensor& self, const at::Tensor& other, const at::Tensor& scale_a, const at::Tensor& scale_b,
    const std::optional<at::Tensor>& offs, const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& /*scale_result*/, std::optional<at::ScalarType> /*out_dtype*/,
    bool /*use_fast_accum*/) {
  return groups_served(self, other, scale_a, scale_b, offs, bias);
}

constexpr std::array<Recipes, 1> group_recipes{{{ScalingType::RowWise, ScalingType::RowWise}}};

at::Tensor scaled_grouped_mm_v2(
    const at::Tensor& self, const at::Tensor& other, at::TensorList scale_a, at::IntArrayRef recipe_a,
    at::IntArrayRef swizzle_a, at::TensorList scale_b, at::IntArrayRef recipe_b, at::IntArrayRef swizzle_b,
    const std::optional<at::Tensor>& offs, const std::optional<at::Tensor>& bias,
    std::optional<at::ScalarType> out_dtype, at::IntArrayRef contraction_dim, bool /*use_fast_accum*/) {
  find_recipes(
      group_recipes,
      "_scaled_grouped_mm_v2 on musa takes float8 factors with float32 scales that are not swizzled: RowWise for both.",
      scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b);
  TORCH_CHECK_VALUE(
      contraction_dim.empty() || contraction_dim == at::IntArrayRef({-1, -2}),
      "_scaled_grouped_mm_v2 contracts the dimensions (-1, -2), not ", contraction_dim, ".");
  return multiply_groups(self, other, scale_a[0], scale_b[0], offs, bias, out_dtype);
}

bool scaled_grouped_mm_v2_served(
    const at::Tensor& self, const at::Tensor& other, at::TensorList scale_a, at::IntArrayRef /*recipe_a*/,
    at::IntArrayRef /*swizzle_a*/, at::TensorList scale_b, at::IntArrayRef /*recipe_b*/, at::IntArrayRef /*swizzle_b*/,
    const std::optional<at::Tensor>& offs, const std::optional<at::Tensor>& bias,
    std::optional<at::ScalarType> /*out_dtype*/, at::IntArrayRef /*contraction_dim*/, bool /*use_fast_accum*/) {
  return groups_served(self, other, scale_a, scale_b, offs, bias);
}

} // namespace

void declare_scaled_products(OpPack& pack) {
  pack.impl("aten::_scaled_mm", TORCH_FN(scaled_mm), TORCH_FN(scaled_mm_served));
  pack.impl("aten::_scaled_mm.out", TORCH_FN(scaled_mm_out), TORCH_FN(scaled_mm_out_served));
  pack.impl("aten::_scaled_mm_v2", TORCH_FN(scaled_mm_v2), TORCH_FN(scaled_mm_v2_served));
  pack.impl("aten::_scaled_mm_v2.out", TORCH_FN(scaled_mm_v2_out), TORCH_FN(scaled_mm_v2_out_served));
  pack.impl("aten::_scaled_grouped_mm", TORCH_FN(scaled_grouped_mm), TORCH_FN(scaled_grouped_mm_served));
  pack.impl("aten::_scaled_grouped_mm_v2", TORCH_FN(scaled_grouped_mm_v2), TORCH_FN(scaled_grouped_mm_v2_served));
}

} // namespace musa_ops_mudnn
