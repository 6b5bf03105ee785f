// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// MatMul, BatchMatMul, MatMulLtParam, GroupedMatMul, Dot.
#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/clamp_min_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/dot_cpu_dispatch.h>
#include <ATen/ops/gelu_cpu_dispatch.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <mudnn_backend/products.h>
#include "support/call.h"
#include "support/alias.h"
#include "support/outputs.h"
#include "support/shapes.h"
#include "support/small.h"

namespace musa::dnn {

template <>
struct Parameters::Of<MatMulLtParam> {
  static const Tensor& scale_a(const MatMulLtParam& param) { return param.scale_a_; }
  static const Tensor& scale_b(const MatMulLtParam& param) { return param.scale_b_; }
  static const Tensor& scale_c(const MatMulLtParam& param) { return param.scale_c_; }
  static const Tensor& scale_d(const MatMulLtParam& param) { return param.scale_d_; }
  static const Tensor& amax_d(const MatMulLtParam& param) { return param.amax_d_; }
  static int quant_tile(const MatMulLtParam& param) { return param.quant_tile_; }
  static bool scale_mn_major(const MatMulLtParam& param) { return param.scale_mn_major_; }
  static MatMulLtParam::MatMulLtEpilogueMode epilogue(const MatMulLtParam& param) { return param.epilogue_; }
};

namespace {

using namespace musa_emulator::dnn;

using musa_emulator::ApiName;
using Access = TensorAccess;
using Epilogue = MatMulLtParam::MatMulLtEpilogueMode;
using Lt = Parameters::Of<MatMulLtParam>;
using Type = Tensor::Type;

struct Options {
  bool transpose_a;
  bool transpose_b;
  double alpha;
  double beta;
  double gamma;
};

// d = alpha * a * b + beta * c + gamma * bias, with shapes after transposition; terms without effect are absent. All
// operands have three dimensions, or all have two, or a has two and the others have one.
struct Product {
  Tensor d, a, b, c, bias;
  double alpha, beta, gamma;
  int64_t batch, m, n, k;
};

// Views are created before the task, so that it needs no views of torch.
Tensor view(const Tensor& tensor, std::initializer_list<int64_t> dims, std::initializer_list<int64_t> strides) {
  Tensor result = tensor;
  result.SetNdInfo(dims, strides);
  return result;
}

int64_t dim(const Tensor& tensor, int from_end) { return Access::dims(tensor)[Access::ndim(tensor) - from_end]; }

int64_t stride(const Tensor& tensor, int from_end) { return Access::strides(tensor)[Access::ndim(tensor) - from_end]; }

void set_transposed(Tensor& to, const Tensor& from, bool transpose) {
  to = from;
  if (!transpose) {
    return;
  }
  if (Access::ndim(from) == 2) {
    to.SetNdInfo({dim(from, 1), dim(from, 2)}, {stride(from, 1), stride(from, 2)});
  } else {
    to.SetNdInfo({dim(from, 3), dim(from, 1), dim(from, 2)}, {stride(from, 3), stride(from, 1), stride(from, 2)});
  }
}

void set_vector(Tensor& to, const Tensor& from) {
  to = from;
  if (Access::ndim(from) == 0) {
    to.SetNdInfo({1});
  }
}

// Removes the first dimension of a batch of one.
Tensor first_of(const Tensor& tensor) {
  Tensor result = tensor;
  result.SetNdInfo(Access::ndim(tensor) - 1, Access::dims(tensor) + 1, Access::strides(tensor) + 1);
  return result;
}

int64_t batch_of(const Tensor& tensor) { return Access::ndim(tensor) == 3 ? Access::dims(tensor)[0] : 1; }

bool is_float(const Tensor& tensor) { return has_type(tensor, {Type::HALF, Type::BFLOAT16, Type::FLOAT}); }

bool is_int8(const Tensor& tensor) { return has_type(tensor, {Type::INT8, Type::QINT8}); }

bool is_fp8(const Tensor& tensor) { return has_type(tensor, {Type::FP8_E5M2, Type::FP8_E4M3}); }

// A stride of a dimension of size 1 is not used for addressing, but is read as a leading dimension, so it must be valid
// for the matrix.
bool degenerate(const Tensor& tensor) {
  const int ndim = Access::ndim(tensor);
  if (ndim == 0) {
    return false;
  }
  if (ndim == 1) {
    return dim(tensor, 1) == 1 && stride(tensor, 1) < 1;
  }
  const int64_t rows = dim(tensor, 2);
  const int64_t columns = dim(tensor, 1);
  const int64_t row = stride(tensor, 2);
  const int64_t column = stride(tensor, 1);
  const bool by_columns = row == 1 && column > 1;
  return (rows == 1 && row < columns && !by_columns) || (columns == 1 && column != 1 && column < rows);
}

// Whether the bias has the shape of d or of its last dimensions.
bool ends_shape_of(const Tensor& d, const Tensor& bias) {
  const int ndim = Access::ndim(bias);
  return ndim >= 1 && ndim <= Access::ndim(d) &&
      std::equal(Access::dims(bias), Access::dims(bias) + ndim, Access::dims(d) + Access::ndim(d) - ndim);
}

bool is_multiplied(const Tensor& d, const Tensor& a, const Tensor& b, bool weight_only) {
  if (is_float(a)) {
    const bool pair = same_type(a, b) || (weight_only && is_int8(b));
    return pair && (same_type(d, a) || has_type(d, {Type::FLOAT}));
  }
  if (is_int8(a)) {
    return is_int8(b) && (is_float(d) || is_int8(d) || has_type(d, {Type::INT32}));
  }
  return is_fp8(a) && is_fp8(b) && (is_float(d) || is_fp8(d));
}

// Checks and describes one product. `ranks` are the minimum and maximum rank of an operand.
bool prepare(
    Call& call, Product& p, const Options& options, std::pair<int, int> ranks, const Tensor& d, const Tensor& a,
    const Tensor& b, const Tensor& c, const Tensor& bias, bool weight_only) {
  if (!call.require(
          Access::present(d) && Access::present(a) && Access::present(b), Status::INVALID_PARAMETER,
          "an operand of the product is absent")) {
    return false;
  }
  for (const Tensor* tensor : {&d, &a, &b, &c, &bias}) {
    if (Access::present(*tensor) &&
        (!call.require(
             !has_type(*tensor, {Type::DOUBLE}), Status::NOT_SUPPORTED, "DOUBLE matrices are not supported") ||
         !call.require(
             tensor == &bias || !degenerate(*tensor), Status::NOT_SUPPORTED,
             "a dimension of size 1 has a stride that is not a valid leading dimension"))) {
      return false;
    }
  }
  if (!call.require(is_multiplied(d, a, b, weight_only), Status::NOT_SUPPORTED, "the types are not supported")) {
    return false;
  }
  for (const Tensor* factor : {&a, &b}) {
    const int ndim = Access::ndim(*factor);
    if (!call.require(
            ndim >= ranks.first && ndim <= ranks.second, Status::INVALID_PARAMETER,
            "an operand has too few or too many dimensions")) {
      return false;
    }
  }

  p.alpha = options.alpha;
  p.beta = options.beta;
  p.gamma = options.gamma;
  set_vector(p.d, d);
  if (Access::present(c) && p.beta != 0) {
    set_vector(p.c, c);
  }
  if (Access::present(bias) && p.gamma != 0) {
    set_vector(p.bias, bias);
  }
  if (!call.require(
          !Access::present(p.c) || same_shape(p.d, p.c), Status::INVALID_PARAMETER,
          "c and the output differ in shape") ||
      !call.require(
          !Access::present(p.bias) || ends_shape_of(p.d, p.bias), Status::INVALID_PARAMETER,
          "the bias has neither the shape of the output nor that of its last dimensions") ||
      !call.require(
          !Access::present(p.c) || is_float(c) || (is_int8(a) && (is_int8(c) || has_type(c, {Type::INT32}))) ||
              (is_fp8(a) && is_fp8(c)),
          Status::NOT_SUPPORTED, "the type of c is not supported") ||
      !call.require(
          !Access::present(p.bias) || is_float(bias) || (is_int8(a) && has_type(bias, {Type::INT32})),
          Status::NOT_SUPPORTED, "the type of the bias is not supported") ||
      !call.require(!same_spot_twice(d), Status::INVALID_PARAMETER, "elements of the output share memory")) {
    return false;
  }

  const int rank_a = Access::ndim(a);
  const int rank_b = Access::ndim(b);
  set_transposed(p.a, a, rank_a > 1 && options.transpose_a);
  set_transposed(p.b, b, rank_b > 1 && options.transpose_b);
  p.batch = std::max(batch_of(a), batch_of(b));
  if (rank_a == 1 || rank_b == 1) {
    if (rank_b > 1) { // a row times a matrix is computed as the transposed matrix times the row
      std::swap(p.a, p.b);
      const Tensor matrix = p.a;
      set_transposed(p.a, matrix, true);
    } else if (rank_a == 1) {
      p.a = view(a, {1, dim(a, 1)}, {dim(a, 1) * std::max<int64_t>(stride(a, 1), 1), stride(a, 1)});
    }
    p.m = dim(p.a, 2);
    p.n = 1;
    p.k = dim(p.a, 1);
    return call.require(dim(p.b, 1) == p.k, Status::INVALID_PARAMETER, "a and b do not match") &&
        call.require(
            Access::ndim(p.d) == 1 && dim(p.d, 1) == p.m, Status::INVALID_PARAMETER,
            "the output is not a vector of the product's size");
  }

  p.m = dim(p.a, 2);
  p.n = dim(p.b, 1);
  p.k = dim(p.a, 1);
  if (!call.require(
          dim(p.b, 2) == p.k && batch_of(a) == batch_of(b), Status::INVALID_PARAMETER, "a and b do not match") ||
      !call.require(
          Access::ndim(p.d) >= 2 && Access::ndim(p.d) <= ranks.second && dim(p.d, 2) == p.m && dim(p.d, 1) == p.n &&
              batch_of(p.d) == p.batch,
          Status::INVALID_PARAMETER, "the shape of the output is not that of the product")) {
    return false;
  }
  if (p.batch == 1) {
    for (Tensor* tensor : {&p.a, &p.b, &p.d, &p.c, &p.bias}) {
      if (Access::ndim(*tensor) == 3) {
        *tensor = first_of(*tensor);
      }
    }
  }
  return true;
}

// One scale for all, one per row or column (`count`), or one per row or column of every matrix.
bool is_scale(const Tensor& scale, int64_t count, int64_t batch) {
  const int64_t elements = Access::elements(scale);
  return has_type(scale, {Type::FLOAT}) && Access::present(scale) &&
      (elements == 1 || elements == count || elements == batch * count);
}

int64_t tiles(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

// One scale per tile along k, for each row or column or for groups of `tile` of them.
bool is_tile_scale(const Tensor& scale, int64_t count, const Product& p, int64_t tile, bool mn_major) {
  if (!has_type(scale, {Type::FLOAT}) || !Access::present(scale)) {
    return false;
  }
  if (Access::elements(scale) == 1) {
    return true;
  }
  const int ndim = Access::ndim(scale);
  if (ndim < 2 || ndim > 3 || (ndim == 3 && batch_of(scale) != p.batch)) {
    return false;
  }
  const int64_t outer = dim(scale, mn_major ? 1 : 2);
  return dim(scale, mn_major ? 2 : 1) == tiles(p.k, tile) && (outer == count || outer == tiles(count, tile));
}

bool accept_parameters(Call& call, const Product& p, const MatMulLtParam& param) {
  const int tile = Lt::quant_tile(param);
  for (const bool left : {true, false}) {
    const Tensor& scale = left ? Lt::scale_a(param) : Lt::scale_b(param);
    const int64_t count = left ? p.m : p.n;
    if (Access::shaped(scale) &&
        !call.require(
            tile > 0 ? is_tile_scale(scale, count, p, tile, Lt::scale_mn_major(param))
                     : is_scale(scale, count, p.batch),
            Status::INVALID_PARAMETER, "the scale of a or b is not FLOAT, or has the wrong shape")) {
      return false;
    }
  }
  for (const Tensor* scale : {&Lt::scale_c(param), &Lt::scale_d(param)}) {
    if (Access::shaped(*scale) &&
        !call.require(
            is_scale(*scale, p.m, p.batch), Status::INVALID_PARAMETER,
            "the scale of c or d is not FLOAT, or has the wrong shape")) {
      return false;
    }
  }
  const Tensor& amax = Lt::amax_d(param);
  const Epilogue epilogue = Lt::epilogue(param);
  const bool biased = epilogue == Epilogue::MATMULLT_EPILOGUE_BIAS ||
      epilogue == Epilogue::MATMULLT_EPILOGUE_RELU_BIAS || epilogue == Epilogue::MATMULLT_EPILOGUE_GELU_BIAS;
  return call.require(
             !Access::shaped(amax) || (Access::elements(amax) == 1 && has_type(amax, {Type::FLOAT})),
             Status::INVALID_PARAMETER, "amax is not one FLOAT") &&
      call.require(
          !biased || Access::present(p.bias) || p.gamma == 0, Status::INVALID_PARAMETER,
          "the epilogue adds a bias, but none is given");
}

// ---- implementation

// Whether the terms can be accumulated in the memory of d: the types are equal, and the result is rounded once.
bool is_plain(const Product& p) {
  const bool sum = Access::present(p.c) && Access::present(p.bias);
  return is_float(p.d) && same_type(p.a, p.d) && same_type(p.b, p.d) &&
      (!Access::present(p.c) || same_type(p.c, p.d)) && (!Access::present(p.bias) || same_type(p.bias, p.d)) &&
      (!sum || has_type(p.d, {Type::FLOAT}));
}

bool is_plain(const MatMulLtParam& param) {
  const auto given = {
      &Lt::scale_a(param), &Lt::scale_b(param), &Lt::scale_c(param), &Lt::scale_d(param), &Lt::amax_d(param)};
  return std::none_of(given.begin(), given.end(), [](const Tensor* tensor) { return Access::shaped(*tensor); });
}

bool is_same(const Tensor& a, const Tensor& b) {
  const int ndim = Access::ndim(a);
  return Access::address(a) == Access::address(b) && same_shape(a, b) &&
      std::equal(Access::strides(a), Access::strides(a) + ndim, Access::strides(b));
}

void activate(at::Tensor& value, Epilogue epilogue) {
  if (epilogue == Epilogue::MATMULLT_EPILOGUE_RELU || epilogue == Epilogue::MATMULLT_EPILOGUE_RELU_BIAS) {
    ops::clamp_min_out(value, value, 0);
  } else if (epilogue == Epilogue::MATMULLT_EPILOGUE_GELU || epilogue == Epilogue::MATMULLT_EPILOGUE_GELU_BIAS) {
    ops::gelu_out(value, value, "none");
  }
}

void run_plain(const Product& p, Epilogue epilogue) {
  at::Tensor& d = lent_alias(p.d);
  const at::Tensor& a = lent_alias(p.a);
  const at::Tensor& b = lent_alias(p.b);
  const bool biased = Access::present(p.bias);
  const Outputs given(d);
  if (Access::present(p.c)) {
    // For c in place, the same tensor object is passed twice; otherwise torch would copy d onto itself.
    multiply(d, a, b, is_same(p.c, p.d) ? d : lent_alias(p.c), p.beta, p.alpha);
    if (biased) {
      ops::add_out(d, d, lent_alias(p.bias), p.gamma);
    }
  } else if (biased) {
    // torch's function also copies the addend first, but as an operator of its own.
    multiply(d, a, b, repeat_small(p.d, p.bias) ? d : lent_alias(p.bias), p.gamma, p.alpha);
  } else {
    multiply(d, a, b, d, 0, p.alpha);
  }
  activate(d, epilogue);
  given.keep();
}

// The scales of tiles, with those along k last.
at::Tensor grid_of(const Tensor& scale, bool mn_major) {
  at::Tensor values = alias(scale);
  if (values.numel() == 1) {
    return values.reshape({1, 1});
  }
  values = mn_major ? values.transpose(-2, -1) : values;
  return values.dim() == 3 && values.size(0) == 1 ? values.squeeze(0) : values; // like the matrices of a batch of one
}

// Expands the scales of tiles to the matrix [count, k].
at::Tensor spread(const Tensor& scale, int64_t count, int64_t k, int64_t tile, bool mn_major) {
  at::Tensor values = grid_of(scale, mn_major);
  if (values.numel() == 1) {
    return values;
  }
  if (values.size(-2) != count) {
    values = values.repeat_interleave(tile, -2).narrow(-2, 0, count);
  }
  return values.repeat_interleave(tile, -1).narrow(-1, 0, k);
}

// For a scale with `rows` rows and `columns` columns, one of which is 1; or for a single number.
at::Tensor scale_of(const Tensor& scale, int64_t rows, int64_t columns) {
  const at::Tensor values = alias(scale);
  if (values.numel() == 1) {
    return values.reshape({1});
  }
  return values.numel() == rows * columns ? values.reshape({rows, columns}) : values.reshape({-1, rows, columns});
}

double quantisation(const Tensor& tensor) { return has_type(tensor, {Type::QINT8}) ? Access::scale(tensor) : 1.0; }

// Rounds to the type of d; values out of range are clamped.
void store_rounded(const Tensor& d, at::Tensor value) {
  const auto whole = [&value](double low, double high) { value = value.round().clamp(low, high); };
  switch (Access::type(d)) {
    case Type::QINT8: value = value.div(quantisation(d)); [[fallthrough]];
    case Type::INT8: whole(-128, 127); break;
    case Type::INT32: // the product is exact in FLOAT, and far from the limits
      value.scalar_type() == at::kDouble
          ? whole(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max())
          : whole(-2147483520.0, 2147483520.0);
      break;
    case Type::FP8_E4M3: value = value.clamp(-448, 448); break;
    case Type::FP8_E5M2: value = value.clamp(-57344, 57344); break;
    default: break;
  }
  at::Tensor out = alias(d);
  at::native::copy_(out, value);
}

// Whether the product has nothing but scales of a and b, and perhaps a bias, so that a device's kernel for 8-bit floats may
// compute it.
bool is_scaled_only(const Product& p, const MatMulLtParam& param) {
  const auto given = {&Lt::scale_c(param), &Lt::scale_d(param), &Lt::amax_d(param)};
  const Epilogue epilogue = Lt::epilogue(param);
  return is_fp8(p.a) && is_fp8(p.b) && Access::ndim(p.d) == 2 && p.alpha == 1 && !Access::present(p.c) &&
      (!Access::present(p.bias) || p.gamma == 1) && Access::shaped(Lt::scale_a(param)) &&
      Access::shaped(Lt::scale_b(param)) &&
      std::none_of(given.begin(), given.end(), [](const Tensor* tensor) { return Access::shaped(*tensor); }) &&
      (epilogue == Epilogue::MATMULLT_EPILOGUE_DEFAULT || epilogue == Epilogue::MATMULLT_EPILOGUE_BIAS);
}

// Products of other types, and those with scales. An INT8 product uses an INT32 accumulator: integers, which FLOAT
// represents exactly up to 2^24 = 1024 * 128 * 128, and DOUBLE beyond.
void run_scaled(const Product& p, const MatMulLtParam& param) {
  const bool integer = is_int8(p.a) && is_int8(p.b);
  const bool long_sum = p.k > 1024 || Access::present(p.c) || Access::present(p.bias);
  const at::ScalarType wide = integer && long_sum ? at::kDouble : at::kFloat;
  const int tile = Lt::quant_tile(param);
  const bool mn_major = Lt::scale_mn_major(param);
  if (!kOnHost && is_scaled_only(p, param)) {
    const auto scale = [&](const Tensor& given) { return tile > 0 ? grid_of(given, mn_major) : alias(given); };
    const std::optional<at::Tensor> bias = Access::present(p.bias) ? std::optional(alias(p.bias)) : std::nullopt;
    if (device_multiply_scaled(
            alias(p.d), alias(p.a), alias(p.b), scale(Lt::scale_a(param)), scale(Lt::scale_b(param)), tile, bias)) {
      return;
    }
  }
  at::Tensor a = alias(p.a).to(wide);
  at::Tensor b = alias(p.b).to(wide);
  if (tile > 0 && Access::shaped(Lt::scale_a(param))) {
    a = a.mul(spread(Lt::scale_a(param), p.m, p.k, tile, mn_major));
  }
  if (tile > 0 && Access::shaped(Lt::scale_b(param))) {
    b = b.mul(spread(Lt::scale_b(param), p.n, p.k, tile, mn_major).transpose(-2, -1));
  }
  at::Tensor value = at::matmul(a, b);
  if (p.alpha != 1) {
    value.mul_(p.alpha);
  }
  const bool bias_counts = has_type(p.bias, {Type::INT32}) && Access::present(p.bias); // in units of the accumulator
  if (bias_counts) {
    value.add_(alias(p.bias).to(wide), p.gamma);
  }
  const bool counts = has_type(p.d, {Type::INT32});
  if (const double step = quantisation(p.a) * quantisation(p.b); step != 1 && !counts) {
    value.mul_(step);
  }
  if (tile == 0 && Access::shaped(Lt::scale_a(param))) {
    value.mul_(scale_of(Lt::scale_a(param), p.m, 1));
  }
  if (tile == 0 && Access::shaped(Lt::scale_b(param))) {
    value.mul_(scale_of(Lt::scale_b(param), 1, p.n));
  }
  if (Access::present(p.c)) {
    at::Tensor c = alias(p.c).to(wide);
    if (Access::shaped(Lt::scale_c(param))) {
      c = c.mul(scale_of(Lt::scale_c(param), p.m, 1));
    }
    value.add_(c, p.beta * quantisation(p.c));
  }
  if (Access::present(p.bias) && !bias_counts) {
    value.add_(alias(p.bias).to(wide), p.gamma);
  }
  activate(value, Lt::epilogue(param));
  if (Access::shaped(Lt::amax_d(param))) {
    at::Tensor amax = alias(Lt::amax_d(param));
    amax.fill_(value.abs().max());
  }
  if (Access::shaped(Lt::scale_d(param))) {
    value.mul_(scale_of(Lt::scale_d(param), p.m, 1));
  }
  store_rounded(p.d, value);
}

void run(const Product& p) {
  is_plain(p) ? run_plain(p, Epilogue::MATMULLT_EPILOGUE_DEFAULT) : run_scaled(p, MatMulLtParam());
}

void run(const Product& p, const MatMulLtParam& param) {
  is_plain(p) && is_plain(param) ? run_plain(p, Lt::epilogue(param)) : run_scaled(p, param);
}

// Workspace for partial sums, if k is so large that it is split among workers. Limited in size, because the workspace
// check writes and reads all of it.
size_t workspace_of(const Product& p) {
  constexpr int64_t splits = 4;
  constexpr int64_t most = 16384;
  return p.k >= splits * std::max(p.m, p.n)
      ? static_cast<size_t>(std::min(splits * p.batch * p.m * p.n * static_cast<int64_t>(sizeof(float)), most))
      : 0;
}

constexpr std::pair<int, int> kVectorOrMatrix{1, 2};
constexpr std::pair<int, int> kMatrixOrBatch{2, 3};

struct Multiplication {
  Product p;
  void operator()() const { run(p); }
};

template <ApiName Name>
Status launch(
    const Handle& handle, const Options& options, std::pair<int, int> ranks, const Tensor& d, const Tensor& a,
    const Tensor& b, const Tensor& c, const Tensor& bias, const MemoryMaintainer& workspace) {
  return call<Name>(handle, {&d, &a, &b, &c, &bias}, [&](Call& call) {
    Multiplication task; // described in place, because copying a product copies five tensors
    if (!prepare(call, task.p, options, ranks, d, a, b, c, bias, /*weight_only=*/false)) {
      return call.status();
    }
    return call.enqueue(workspace, workspace_of(task.p), task, /*optional=*/true);
  });
}

template <class Value>
Status keep(Value& own, Value value) {
  own = value;
  return Status::SUCCESS;
}

Status keep_mode(ImplBase::ComputeMode& own, ImplBase::ComputeMode mode) {
  const bool known = mode == ImplBase::ComputeMode::SCALAR || mode == ImplBase::ComputeMode::TENSOR;
  return known ? keep(own, mode) : Status::INVALID_PARAMETER;
}

} // namespace

Status MatMul::SetComputeMode(ComputeMode mode) { return keep_mode(mode_, mode); }

Status MatMul::SetTranspose(bool a, bool b) {
  transpose_a_ = a;
  return keep(transpose_b_, b);
}

Status MatMul::SetAlpha(double alpha) { return keep(alpha_, alpha); }

Status MatMul::SetBeta(double beta) { return keep(beta_, beta); }

Status MatMul::SetGamma(double gamma) { return keep(gamma_, gamma); }

Status MatMul::Run(
    Handle& handle, Tensor& c, const Tensor& a, const Tensor& b, const MemoryMaintainer& workspace) const {
  const Options options{transpose_a_, transpose_b_, alpha_, beta_, gamma_};
  return launch<"musa::dnn::MatMul::Run">(handle, options, kVectorOrMatrix, c, a, b, c, Tensor(), workspace);
}

Status MatMul::RunWithBiasAdd(
    Handle& handle, Tensor& c, const Tensor& a, const Tensor& b, const Tensor& bias,
    const MemoryMaintainer& workspace) const {
  return RunWithBiasAdd(handle, c, a, b, c, bias, workspace);
}

Status MatMul::RunWithBiasAdd(
    Handle& handle, Tensor& d, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& bias,
    const MemoryMaintainer& workspace) const {
  const Options options{transpose_a_, transpose_b_, alpha_, beta_, gamma_};
  return launch<"musa::dnn::MatMul::RunWithBiasAdd">(handle, options, kVectorOrMatrix, d, a, b, c, bias, workspace);
}

Status MatMulLtParam::SetScale(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
  return SetScale(a, b, c, d, 0, false);
}

Status MatMulLtParam::SetScale(
    const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, int quant_tile, bool scale_mn_major) {
  if (quant_tile < 0) {
    return Status::INVALID_PARAMETER;
  }
  scale_a_ = a;
  scale_b_ = b;
  scale_c_ = c;
  scale_d_ = d;
  quant_tile_ = quant_tile;
  scale_mn_major_ = scale_mn_major;
  return Status::SUCCESS;
}

Status MatMulLtParam::SetAmaxD(Tensor& amax) {
  amax_d_ = amax;
  return Status::SUCCESS;
}

Status MatMulLtParam::SetEpilogue(MatMulLtEpilogueMode mode) {
  const bool known = mode >= MatMulLtEpilogueMode::MATMULLT_EPILOGUE_DEFAULT &&
      mode <= MatMulLtEpilogueMode::MATMULLT_EPILOGUE_GELU_BIAS;
  return known ? keep(epilogue_, mode) : Status::INVALID_PARAMETER;
}

Status BatchMatMul::SetComputeMode(ComputeMode mode) { return keep_mode(mode_, mode); }

Status BatchMatMul::SetTranspose(bool a, bool b) {
  transpose_a_ = a;
  return keep(transpose_b_, b);
}

Status BatchMatMul::SetAlpha(double alpha) { return keep(alpha_, alpha); }

Status BatchMatMul::SetBeta(double beta) { return keep(beta_, beta); }

Status BatchMatMul::SetGamma(double gamma) { return keep(gamma_, gamma); }

Status BatchMatMul::SetDeterministic(bool deterministic) { return keep(deterministic_, deterministic); }

Status BatchMatMul::GetWorkspaceSize(
    Handle& handle, size_t& bytes, const Tensor& c, const Tensor& a, const Tensor& b) const {
  return call<"musa::dnn::BatchMatMul::GetWorkspaceSize">(handle, {&c, &a, &b}, [&](Call& call) {
    const Options options{transpose_a_, transpose_b_, alpha_, beta_, gamma_};
    Product p;
    if (prepare(call, p, options, kMatrixOrBatch, c, a, b, c, Tensor(), /*weight_only=*/false)) {
      bytes = workspace_of(p);
    }
    return call.status();
  });
}

Status BatchMatMul::Run(
    Handle& handle, Tensor& c, const Tensor& a, const Tensor& b, const MemoryMaintainer& workspace) const {
  const Options options{transpose_a_, transpose_b_, alpha_, beta_, gamma_};
  return launch<"musa::dnn::BatchMatMul::Run">(handle, options, kMatrixOrBatch, c, a, b, c, Tensor(), workspace);
}

Status BatchMatMul::Run(
    Handle& handle, Tensor& c, const Tensor& a, const Tensor& b, int64_t batch, int64_t m, int64_t n, int64_t k,
    int64_t lda, int64_t ldb, int64_t ldc, int64_t stride_a, int64_t stride_b, int64_t stride_c,
    const MemoryMaintainer& workspace) const {
  const int64_t columns_a = transpose_a_ ? m : k;
  const int64_t columns_b = transpose_b_ ? k : n;
  if (batch < 1 || m < 1 || n < 1 || k < 1 || lda < columns_a || ldb < columns_b || ldc < n || stride_a < 0 ||
      stride_b < 0 || stride_c < 0) {
    return call<"musa::dnn::BatchMatMul::Run">(handle, {&c, &a, &b}, [&](Call& call) {
      call.require(
          false, Status::INVALID_PARAMETER, "a size is less than 1, or a leading dimension less than its row length");
      return call.status();
    });
  }
  const Options options{transpose_a_, transpose_b_, alpha_, beta_, gamma_};
  const Tensor matrices_a = view(a, {batch, transpose_a_ ? k : m, columns_a}, {stride_a, lda, 1});
  const Tensor matrices_b = view(b, {batch, transpose_b_ ? n : k, columns_b}, {stride_b, ldb, 1});
  const Tensor matrices_c = view(c, {batch, m, n}, {stride_c, ldc, 1});
  return launch<"musa::dnn::BatchMatMul::Run">(
      handle, options, kMatrixOrBatch, matrices_c, matrices_a, matrices_b, matrices_c, Tensor(), workspace);
}

Status BatchMatMul::RunWithBiasAdd(
    Handle& handle, Tensor& c, const Tensor& a, const Tensor& b, const Tensor& bias,
    const MemoryMaintainer& workspace) const {
  return RunWithBiasAdd(handle, c, a, b, c, bias, workspace);
}

Status BatchMatMul::RunWithBiasAdd(
    Handle& handle, Tensor& d, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& bias,
    const MemoryMaintainer& workspace) const {
  const Options options{transpose_a_, transpose_b_, alpha_, beta_, gamma_};
  return launch<"musa::dnn::BatchMatMul::RunWithBiasAdd">(handle, options, kMatrixOrBatch, d, a, b, c, bias, workspace);
}

Status BatchMatMul::RunLt(
    Handle& handle, Tensor& d, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& bias,
    const MatMulLtParam& param, const MemoryMaintainer& workspace) const {
  const auto operands = {
      &static_cast<const Tensor&>(d),
      &a,
      &b,
      &c,
      &bias,
      &Lt::scale_a(param),
      &Lt::scale_b(param),
      &Lt::scale_c(param),
      &Lt::scale_d(param),
      &Lt::amax_d(param)};
  return call<"musa::dnn::BatchMatMul::RunLt">(handle, operands, [&](Call& call) {
    const Options options{transpose_a_, transpose_b_, alpha_, beta_, gamma_};
    Product p;
    if (!prepare(call, p, options, kMatrixOrBatch, d, a, b, c, bias, /*weight_only=*/true) ||
        !accept_parameters(call, p, param)) {
      return call.status();
    }
    return call.enqueue(workspace, workspace_of(p), [p, param = param] { run(p, param); }, /*optional=*/true);
  });
}

Status GroupedMatMul::SetComputeMode(ComputeMode mode) { return keep_mode(mode_, mode); }

Status GroupedMatMul::SetTranspose(bool a, bool b) {
  transpose_a_ = a;
  return keep(transpose_b_, b);
}

Status GroupedMatMul::SetAlpha(double alpha) { return keep(alpha_, alpha); }

Status GroupedMatMul::SetBeta(double beta) { return keep(beta_, beta); }

Status GroupedMatMul::SetGamma(double gamma) { return keep(gamma_, gamma); }

Status GroupedMatMul::RunLt(
    Handle& handle, Tensor* d, const Tensor* a, const Tensor* b, const Tensor* c, const Tensor* bias,
    const MatMulLtParam* params, int groups, const MemoryMaintainer& workspace) const {
  constexpr auto name = "musa::dnn::GroupedMatMul::RunLt";
  return call<"musa::dnn::GroupedMatMul::RunLt">(handle, {}, [&](Call& call) {
    if (!call.require(
            groups > 0 && d != nullptr && a != nullptr && b != nullptr, Status::INVALID_PARAMETER,
            "there are no groups")) {
      return call.status();
    }
    struct Group {
      Product product;
      MatMulLtParam param;
    };
    const Options options{transpose_a_, transpose_b_, alpha_, beta_, gamma_};
    const Tensor absent;
    std::vector<Group> all(static_cast<size_t>(groups));
    size_t bytes = 0;
    for (int i = 0; i < groups; ++i) {
      Group& group = all[static_cast<size_t>(i)];
      const Tensor& c_i = c != nullptr ? c[i] : absent;
      const Tensor& bias_i = bias != nullptr ? bias[i] : absent;
      group.param = params != nullptr ? params[i] : MatMulLtParam();
      // Each group is checked as a separate call, so that the log shows its operands.
      const std::initializer_list<const Tensor*> operands = {
          &d[i],
          &a[i],
          &b[i],
          &c_i,
          &bias_i,
          &Lt::scale_a(group.param),
          &Lt::scale_b(group.param),
          &Lt::scale_c(group.param),
          &Lt::scale_d(group.param),
          &Lt::amax_d(group.param)};
      Call part(name, handle, operands);
      if (!part.accept_operands() ||
          !prepare(part, group.product, options, kMatrixOrBatch, d[i], a[i], b[i], c_i, bias_i, /*weight_only=*/true) ||
          !accept_parameters(part, group.product, group.param)) {
        return part.status();
      }
      bytes = std::max(bytes, workspace_of(group.product));
    }
    return call.enqueue(
        workspace, bytes,
        [all = std::move(all)] {
          for (const Group& group : all) {
            run(group.product, group.param);
          }
        },
        /*optional=*/true);
  });
}

Status Dot::SetComputeMode(ComputeMode mode) { return keep_mode(mode_, mode); }

Status Dot::Run(
    Handle& handle, Tensor& out, const Tensor& left, const Tensor& right, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Dot::Run">(handle, {&out, &left, &right}, [&](Call& call) {
    if (!call.require(
            Access::present(out) && Access::present(left) && Access::present(right), Status::INVALID_PARAMETER,
            "an operand of the product is absent") ||
        !call.require(
            is_float(left) && same_type(left, right) && (same_type(out, left) || has_type(out, {Type::FLOAT})),
            Status::NOT_SUPPORTED, "the types are not supported") ||
        !call.require(
            Access::ndim(left) == 1 && same_shape(left, right), Status::INVALID_PARAMETER,
            "left and right are not vectors of one length") ||
        !call.require(
            Access::elements(out) == 1 && Access::ndim(out) <= 1, Status::INVALID_PARAMETER,
            "the output is not a single number") ||
        !call.require(
            !degenerate(left) && !degenerate(right), Status::NOT_SUPPORTED,
            "a vector of one element has no valid stride")) {
      return call.status();
    }
    const size_t bytes = 256 * sizeof(float); // partial sums
    return call.enqueue(workspace, bytes, [out = out, left = left, right = right] {
      const bool widened = !same_type(out, left); // the hardware accumulates in FLOAT
      const at::Tensor l = widened ? alias(left).to(at::kFloat) : alias(left);
      const at::Tensor r = widened ? alias(right).to(at::kFloat) : alias(right);
      at::Tensor result = alias(out);
      at::native::copy_(result, ops::dot(l, r));
    });
  });
}

} // namespace musa::dnn
