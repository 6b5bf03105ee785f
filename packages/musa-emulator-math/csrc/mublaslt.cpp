// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// muBLASLt: matrix products with an epilogue, configured by descriptors.
#include "mublasLt.h"

#include <ATen/ops/gelu.h>

#include <cstring>
#include <utility>

#include "mublas/product.h"
#include "support/entry.h"

// `magic` is the first field of each object, so that a stale or wrong pointer is detected.
struct mublasLtContext {
  static constexpr uint32_t kAlive = 0x4d424c48;
  uint32_t magic = kAlive;
};
struct mublasLtMatmulDescOpaque_t {
  static constexpr uint32_t kAlive = 0x4d424c44;
  uint32_t magic = kAlive;
  mublasComputeType_t compute = MUBLAS_COMPUTE_32F;
  musaDataType scale_type = MUSA_R_32F;
  mublasOperation_t transa = MUBLAS_OP_N, transb = MUBLAS_OP_N;
  mublasLtEpilogue_t epilogue = MUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct mublasLtMatrixLayoutOpaque_t {
  static constexpr uint32_t kAlive = 0x4d424c4c;
  uint32_t magic = kAlive;
  musaDataType type = MUSA_R_32F;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0;
  int32_t batch = 1;
  int64_t batch_stride = 0;
};
struct mublasLtMatmulPreferenceOpaque_t {
  static constexpr uint32_t kAlive = 0x4d424c50;
  uint32_t magic = kAlive;
  size_t workspace = 0;
};

using namespace musa_emulator;
using namespace musa_emulator::blas;

namespace {

template <ApiName Name, unsigned Traits = kOrdinary, class Body>
mublasStatus_t framed(Body&& body) {
  return math::framed<Name, Traits>(status_of, std::forward<Body>(body));
}

template <ApiName Name, class Object>
mublasStatus_t create(Object** created, Object object) {
  return framed<Name>([&] {
    if (created == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    *created = new Object(std::move(object));
    return MUBLAS_STATUS_SUCCESS;
  });
}

template <ApiName Name, class Object>
mublasStatus_t destroy(Object* object, mublasStatus_t invalid = MUBLAS_STATUS_INVALID_POINTER) {
  return framed<Name, kReleases>([&] {
    if (!alive(object)) {
      return invalid;
    }
    object->magic = 0;
    delete object;
    return MUBLAS_STATUS_SUCCESS;
  });
}

// The storage of an attribute; null for an unknown attribute.
struct Field {
  void* data = nullptr;
  size_t size = 0;
};
template <class T>
Field field(T& member) {
  return {&member, sizeof(T)};
}
Field find(mublasLtMatmulDesc_t description, mublasLtMatmulDescAttributes_t attribute) {
  switch (attribute) {
    case MUBLASLT_MATMUL_DESC_TRANSA: return field(description->transa);
    case MUBLASLT_MATMUL_DESC_TRANSB: return field(description->transb);
    case MUBLASLT_MATMUL_DESC_EPILOGUE: return field(description->epilogue);
    case MUBLASLT_MATMUL_DESC_BIAS_POINTER: return field(description->bias);
  }
  return {};
}
Field find(mublasLtMatrixLayout_t layout, mublasLtMatrixLayoutAttribute_t attribute) {
  switch (attribute) {
    case MUBLASLT_MATRIX_LAYOUT_TYPE: return field(layout->type);
    case MUBLASLT_MATRIX_LAYOUT_ROWS: return field(layout->rows);
    case MUBLASLT_MATRIX_LAYOUT_COLS: return field(layout->columns);
    case MUBLASLT_MATRIX_LAYOUT_LD: return field(layout->ld);
    case MUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return field(layout->batch);
    case MUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return field(layout->batch_stride);
  }
  return {};
}
Field find(mublasLtMatmulPreference_t preference, mublasLtMatmulPreferenceAttributes_t attribute) {
  return attribute == MUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? field(preference->workspace) : Field{};
}

template <class Object, class Attribute>
mublasStatus_t set(Object* object, Attribute attribute, const void* value, size_t bytes) {
  if (!alive(object) || value == nullptr) {
    return MUBLAS_STATUS_INVALID_POINTER;
  }
  const Field target = find(object, attribute);
  if (target.data == nullptr || target.size != bytes) {
    return MUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(target.data, value, bytes);
  return MUBLAS_STATUS_SUCCESS;
}

template <class Object, class Attribute>
mublasStatus_t get(Object* object, Attribute attribute, void* value, size_t bytes, size_t* written) {
  if (!alive(object) || (value == nullptr && (bytes != 0 || written == nullptr))) {
    return MUBLAS_STATUS_INVALID_POINTER;
  }
  const Field source = find(object, attribute);
  if (source.data == nullptr || (bytes != 0 && source.size != bytes)) {
    return MUBLAS_STATUS_INVALID_VALUE;
  }
  if (written != nullptr) {
    *written = source.size;
  }
  if (bytes != 0) {
    std::memcpy(value, source.data, bytes);
  }
  return MUBLAS_STATUS_SUCCESS;
}

// A validated product of batches, with copies of the descriptors.
struct Matmul {
  Product product;
  at::ScalarType type_d, scale_type;
  int64_t ldd, stride_a, stride_b, stride_c, stride_d;
  int batch;
  mublasLtEpilogue_t epilogue;
  const void* bias;

  bool has_bias() const {
    return epilogue == MUBLASLT_EPILOGUE_BIAS || epilogue == MUBLASLT_EPILOGUE_RELU_BIAS ||
        epilogue == MUBLASLT_EPILOGUE_GELU_BIAS;
  }

  void operator()(
      const void* a, const void* b, const void* c, void* d, const at::Scalar& alpha, const at::Scalar& beta) const {
    if (epilogue == MUBLASLT_EPILOGUE_DEFAULT && (c == d || beta.equal(0)) && product.c == type_d) {
      Product into = product;
      into.ldc = ldd;
      into(a, b, d, alpha, beta);
      return;
    }
    at::Tensor sum = product.compute_product(a, b).mul_(alpha);
    if (!beta.equal(0)) {
      sum.add_(matrix(c, product.m, product.n, product.ldc, product.c).to(product.compute), beta);
    }
    if (has_bias()) {
      sum.add_(vector(bias, product.m, 1, type_d).unsqueeze(1));
    }
    switch (epilogue) {
      case MUBLASLT_EPILOGUE_RELU:
      case MUBLASLT_EPILOGUE_RELU_BIAS: sum.clamp_min_(0); break;
      case MUBLASLT_EPILOGUE_GELU:
      case MUBLASLT_EPILOGUE_GELU_BIAS: sum = at::gelu(sum, "tanh"); break;
      case MUBLASLT_EPILOGUE_DEFAULT:
      case MUBLASLT_EPILOGUE_BIAS: break;
    }
    matrix(d, product.m, product.n, ldd, type_d).copy_(sum);
  }
};

bool known(mublasLtEpilogue_t epilogue) {
  switch (epilogue) {
    case MUBLASLT_EPILOGUE_DEFAULT:
    case MUBLASLT_EPILOGUE_RELU:
    case MUBLASLT_EPILOGUE_BIAS:
    case MUBLASLT_EPILOGUE_RELU_BIAS:
    case MUBLASLT_EPILOGUE_GELU:
    case MUBLASLT_EPILOGUE_GELU_BIAS: return true;
  }
  return false;
}

// Whether alpha and beta can have the type `scale` for this computation.
bool scales(at::ScalarType scale, mublasComputeType_t compute, at::ScalarType computed) {
  return scale == computed || (compute == MUBLAS_COMPUTE_16F && scale == at::kHalf) ||
      (compute == MUBLAS_COMPUTE_32I && (scale == at::kInt || scale == at::kFloat));
}

mublasStatus_t describe(
    mublasLtMatmulDesc_t description, mublasLtMatrixLayout_t a, mublasLtMatrixLayout_t b, mublasLtMatrixLayout_t c,
    mublasLtMatrixLayout_t d, Matmul* matmul) {
  if (!alive(description) || !alive(a) || !alive(b) || !alive(c) || !alive(d)) {
    return MUBLAS_STATUS_INVALID_POINTER;
  }
  if (!blas::known(description->transa) || !blas::known(description->transb)) {
    return MUBLAS_STATUS_INVALID_VALUE;
  }
  if (!known(description->epilogue)) {
    return MUBLAS_STATUS_NOT_IMPLEMENTED;
  }
  const bool kept_a = description->transa == MUBLAS_OP_N, kept_b = description->transb == MUBLAS_OP_N;
  const uint64_t k = kept_a ? a->columns : a->rows;
  if ((kept_a ? a->rows : a->columns) != d->rows || (kept_b ? b->rows : b->columns) != k ||
      (kept_b ? b->columns : b->rows) != d->columns || c->rows != d->rows || c->columns != d->columns ||
      !holds(d->ld, d->rows) || a->batch != d->batch || b->batch != d->batch || c->batch != d->batch) {
    return MUBLAS_STATUS_INVALID_SIZE;
  }
  const mublasStatus_t status = prepare(
      description->transa, description->transb, d->rows, d->columns, k, a->type, a->ld, b->type, b->ld, c->type, c->ld,
      description->compute, d->batch, &matmul->product);
  if (status != MUBLAS_STATUS_SUCCESS) {
    return status;
  }
  const std::optional<at::ScalarType> type_d = scalar_type(d->type), scale = scalar_type(description->scale_type);
  if (!type_d || !scale || !scales(*scale, description->compute, matmul->product.compute) ||
      c10::isComplexType(*type_d) != c10::isComplexType(matmul->product.c) ||
      (c10::isComplexType(*type_d) && description->epilogue != MUBLASLT_EPILOGUE_DEFAULT &&
       description->epilogue != MUBLASLT_EPILOGUE_BIAS)) {
    return MUBLAS_STATUS_NOT_IMPLEMENTED;
  }
  matmul->type_d = *type_d, matmul->scale_type = *scale, matmul->ldd = d->ld, matmul->batch = d->batch;
  matmul->stride_a = a->batch_stride, matmul->stride_b = b->batch_stride;
  matmul->stride_c = c->batch_stride, matmul->stride_d = d->batch_stride;
  matmul->epilogue = description->epilogue, matmul->bias = description->bias;
  return matmul->has_bias() && matmul->bias == nullptr ? MUBLAS_STATUS_INVALID_POINTER : MUBLAS_STATUS_SUCCESS;
}

} // namespace

mublasStatus_t mublasLtCreate(mublasLtHandle_t* handle) {
  if (handle == nullptr) {
    return MUBLAS_STATUS_INVALID_POINTER;
  }
  return status_of(api<"mublasLtCreate">([&] {
    int device;
    const musaError_t status = musaGetDevice(&device); // fails without a device
    if (status == musaSuccess) {
      *handle = new mublasLtContext;
    }
    return status;
  }));
}
mublasStatus_t mublasLtDestroy(mublasLtHandle_t handle) {
  return destroy<"mublasLtDestroy">(handle, MUBLAS_STATUS_INVALID_HANDLE);
}

mublasStatus_t mublasLtMatmulDescCreate(
    mublasLtMatmulDesc_t* description, mublasComputeType_t compute, musaDataType scale_type) {
  mublasLtMatmulDescOpaque_t made;
  made.compute = compute;
  made.scale_type = scale_type;
  return create<"mublasLtMatmulDescCreate">(description, made);
}
mublasStatus_t mublasLtMatmulDescDestroy(mublasLtMatmulDesc_t description) {
  return destroy<"mublasLtMatmulDescDestroy">(description);
}
mublasStatus_t mublasLtMatrixLayoutCreate(
    mublasLtMatrixLayout_t* layout, musaDataType type, uint64_t rows, uint64_t cols, int64_t ld) {
  mublasLtMatrixLayoutOpaque_t made;
  made.type = type;
  made.rows = rows, made.columns = cols, made.ld = ld;
  return create<"mublasLtMatrixLayoutCreate">(layout, made);
}
mublasStatus_t mublasLtMatrixLayoutDestroy(mublasLtMatrixLayout_t layout) {
  return destroy<"mublasLtMatrixLayoutDestroy">(layout);
}
mublasStatus_t mublasLtMatmulPreferenceCreate(mublasLtMatmulPreference_t* preference) {
  return create<"mublasLtMatmulPreferenceCreate">(preference, mublasLtMatmulPreferenceOpaque_t{});
}
mublasStatus_t mublasLtMatmulPreferenceDestroy(mublasLtMatmulPreference_t preference) {
  return destroy<"mublasLtMatmulPreferenceDestroy">(preference);
}

mublasStatus_t mublasLtMatmulDescSetAttribute(
    mublasLtMatmulDesc_t description, mublasLtMatmulDescAttributes_t attribute, const void* value, size_t bytes) {
  return set(description, attribute, value, bytes);
}
mublasStatus_t mublasLtMatmulDescGetAttribute(
    mublasLtMatmulDesc_t description, mublasLtMatmulDescAttributes_t attribute, void* value, size_t bytes,
    size_t* written) {
  return get(description, attribute, value, bytes, written);
}
mublasStatus_t mublasLtMatrixLayoutSetAttribute(
    mublasLtMatrixLayout_t layout, mublasLtMatrixLayoutAttribute_t attribute, const void* value, size_t bytes) {
  return set(layout, attribute, value, bytes);
}
mublasStatus_t mublasLtMatrixLayoutGetAttribute(
    mublasLtMatrixLayout_t layout, mublasLtMatrixLayoutAttribute_t attribute, void* value, size_t bytes,
    size_t* written) {
  return get(layout, attribute, value, bytes, written);
}
mublasStatus_t mublasLtMatmulPreferenceSetAttribute(
    mublasLtMatmulPreference_t preference, mublasLtMatmulPreferenceAttributes_t attribute, const void* value,
    size_t bytes) {
  return set(preference, attribute, value, bytes);
}

mublasStatus_t mublasLtMatmulAlgoGetHeuristic(
    mublasLtHandle_t handle, mublasLtMatmulDesc_t description, mublasLtMatrixLayout_t a, mublasLtMatrixLayout_t b,
    mublasLtMatrixLayout_t c, mublasLtMatrixLayout_t d, mublasLtMatmulPreference_t preference, int requested,
    mublasLtMatmulHeuristicResult_t results[], int* returned) {
  return framed<"mublasLtMatmulAlgoGetHeuristic">([&] {
    if (!alive(handle)) {
      return MUBLAS_STATUS_INVALID_HANDLE;
    }
    if (!alive(preference) || results == nullptr || returned == nullptr) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    *returned = 0;
    if (requested < 1) {
      return MUBLAS_STATUS_INVALID_VALUE;
    }
    Matmul matmul;
    const mublasStatus_t status = describe(description, a, b, c, d, &matmul);
    if (status == MUBLAS_STATUS_SUCCESS) {
      results[0] = {};
      results[0].wavesCount = 1;
      *returned = 1;
    }
    return status;
  });
}

mublasStatus_t mublasLtMatmul(
    mublasLtHandle_t handle, mublasLtMatmulDesc_t description, const void* alpha, const void* a,
    mublasLtMatrixLayout_t layout_a, const void* b, mublasLtMatrixLayout_t layout_b, const void* beta, const void* c,
    mublasLtMatrixLayout_t layout_c, void* d, mublasLtMatrixLayout_t layout_d, const mublasLtMatmulAlgo_t*, void*,
    size_t, musaStream_t stream) {
  return framed<"mublasLtMatmul">([&] {
    if (!alive(handle)) {
      return MUBLAS_STATUS_INVALID_HANDLE;
    }
    Matmul matmul;
    const mublasStatus_t status = describe(description, layout_a, layout_b, layout_c, layout_d, &matmul);
    if (status != MUBLAS_STATUS_SUCCESS || matmul.product.m == 0 || matmul.product.n == 0 || matmul.batch == 0) {
      return status;
    }
    if (alpha == nullptr || beta == nullptr || d == nullptr ||
        (matmul.product.k > 0 && (a == nullptr || b == nullptr))) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    const at::Scalar factor = Factor(/*on_device=*/false, alpha, matmul.scale_type)();
    const at::Scalar kept = Factor(/*on_device=*/false, beta, matmul.scale_type)();
    if (c == nullptr && !kept.equal(0)) {
      return MUBLAS_STATUS_INVALID_POINTER;
    }
    return status_of(math::enqueue(stream, "mublasLtMatmul", [=] {
      for (int i = 0; i < matmul.batch; ++i) {
        matmul(
            advance(a, matmul.product.a, matmul.stride_a * i), advance(b, matmul.product.b, matmul.stride_b * i),
            advance(c, matmul.product.c, matmul.stride_c * i),
            const_cast<void*>(advance(d, matmul.type_d, matmul.stride_d * i)), factor, kept);
      }
    }));
  });
}
