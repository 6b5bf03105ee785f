// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// muFFT on torch's transforms, with strided views of device memory.
#include "mufft.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_fft_c2c.h>
#include <ATen/ops/_fft_c2r.h>
#include <ATen/ops/_fft_r2c.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/accumulate.h>

#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <vector>

#include "musa_emulator.h"
#include "support/entry.h"
#include "support/task.h"

namespace {

using musa_emulator::api;
using musa_emulator::kReleases;

// Strides of the input or output. Empty: contiguous.
struct Layout {
  std::vector<int64_t> embed;
  int64_t stride = 1, distance = 0;
};

struct Plan {
  bool made = false;
  bool allocates = true; // its own workspace
  size_t workspace = 0;  // bytes, as large as the result
  void* area = nullptr;
  musaStream_t stream = nullptr;
  std::vector<int64_t> n;
  Layout in, out;
  int64_t batch = 1;
  at::ScalarType in_type = at::kComplexFloat, out_type = at::kComplexFloat;
};

// Guards the plan table; an execution copies its plan.
std::mutex table_mutex;
std::map<mufftHandle, std::shared_ptr<Plan>>& table() {
  static auto* plans = new std::map<mufftHandle, std::shared_ptr<Plan>>;
  return *plans;
}

std::shared_ptr<Plan> find(mufftHandle handle) {
  const std::lock_guard lock(table_mutex);
  const auto found = table().find(handle);
  return found != table().end() ? found->second : nullptr;
}

mufftResult_t result_of(musaError_t error) {
  switch (error) {
    case musaSuccess: return MUFFT_SUCCESS;
    case musaErrorInvalidValue: return MUFFT_INVALID_VALUE;
    case musaErrorMemoryAllocation: return MUFFT_ALLOC_FAILED;
    case musaErrorInvalidResourceHandle: return MUFFT_INVALID_PLAN;
    default: return MUFFT_EXEC_FAILED;
  }
}

template <musa_emulator::ApiName Name, unsigned Traits = musa_emulator::kOrdinary, class Body>
mufftResult_t call(Body&& body) {
  return musa_emulator::math::framed<Name, Traits>(result_of, std::forward<Body>(body));
}

std::optional<at::ScalarType> scalar_type(musaDataType type) {
  switch (type) {
    case MUSA_R_16F: return at::kHalf;
    case MUSA_R_32F: return at::kFloat;
    case MUSA_R_64F: return at::kDouble;
    case MUSA_C_16F: return at::kComplexHalf;
    case MUSA_C_32F: return at::kComplexFloat;
    case MUSA_C_64F: return at::kComplexDouble;
    default: return std::nullopt;
  }
}

bool types_of(mufftType_t type, at::ScalarType* in, at::ScalarType* out) {
  switch (type) {
    case MUFFT_C2C: *in = at::kComplexFloat, *out = at::kComplexFloat; return true;
    case MUFFT_R2C: *in = at::kFloat, *out = at::kComplexFloat; return true;
    case MUFFT_C2R: *in = at::kComplexFloat, *out = at::kFloat; return true;
    case MUFFT_Z2Z: *in = at::kComplexDouble, *out = at::kComplexDouble; return true;
    case MUFFT_D2Z: *in = at::kDouble, *out = at::kComplexDouble; return true;
    case MUFFT_Z2D: *in = at::kComplexDouble, *out = at::kDouble; return true;
  }
  return false;
}

template <class Int>
Layout layout(const Int* embed, int rank, int64_t stride, int64_t distance) {
  Layout made;
  if (embed != nullptr) {
    made.embed.assign(embed, embed + rank);
    made.stride = stride;
    made.distance = distance;
  }
  return made;
}

template <class Int>
mufftResult_t make(
    mufftHandle handle, int rank, const Int* n, Layout in, Layout out, at::ScalarType in_type, at::ScalarType out_type,
    int64_t batch, size_t* bytes) {
  const std::shared_ptr<Plan> plan = find(handle);
  if (plan == nullptr || plan->made) {
    return MUFFT_INVALID_PLAN;
  }
  if (c10::toRealValueType(in_type) == at::kDouble && torch_musa_capability("lacks_float64") == 1) {
    return MUFFT_NOT_SUPPORTED;
  }
  if (rank < 1 || rank > 3 || n == nullptr || batch < 1) {
    return rank < 1 || rank > 3 || n == nullptr ? MUFFT_INVALID_VALUE : MUFFT_INVALID_SIZE;
  }
  for (int i = 0; i < rank; ++i) {
    if (n[i] < 1) {
      return MUFFT_INVALID_SIZE;
    }
  }
  plan->n.assign(n, n + rank);
  plan->in = std::move(in);
  plan->out = std::move(out);
  plan->in_type = in_type;
  plan->out_type = out_type;
  plan->batch = batch;
  plan->workspace = c10::elementSize(out_type) * static_cast<size_t>(batch * c10::multiply_integers(plan->n));
  plan->made = true;
  if (bytes != nullptr) {
    *bytes = plan->workspace;
  }
  return MUFFT_SUCCESS;
}

template <class Int>
mufftResult_t make(
    mufftHandle handle, int rank, const Int* n, const Int* inembed, int64_t istride, int64_t idist, const Int* onembed,
    int64_t ostride, int64_t odist, mufftType_t type, int64_t batch, size_t* bytes) {
  at::ScalarType in, out;
  if (!types_of(type, &in, &out)) {
    return MUFFT_INVALID_TYPE;
  }
  return make(
      handle, rank, n, layout(inembed, rank, istride, idist), layout(onembed, rank, ostride, odist), in, out, batch,
      bytes);
}

// Creates and makes a plan; if making it fails, the plan is destroyed.
template <class Make>
mufftResult_t create(mufftHandle* handle, Make&& make_it) {
  if (handle == nullptr) {
    return MUFFT_INVALID_VALUE;
  }
  mufftHandle made;
  {
    const std::lock_guard lock(table_mutex);
    static mufftHandle last = 0;
    made = ++last;
    table()[made] = std::make_shared<Plan>();
  }
  const mufftResult_t result = make_it(made);
  if (result == MUFFT_SUCCESS) {
    *handle = made;
  } else {
    const std::lock_guard lock(table_mutex);
    table().erase(made);
  }
  return result;
}

// The input or output of a plan. `last`: the size of the last dimension on this side, where the transform has n;
// `padded`: rows of real numbers are padded for an in-place complex result.
at::Tensor side(const Plan& plan, void* data, const Layout& layout, at::ScalarType type, int64_t last, bool padded) {
  std::vector<int64_t> sizes{plan.batch};
  sizes.insert(sizes.end(), plan.n.begin(), plan.n.end());
  sizes.back() = last;
  std::vector<int64_t> embed = layout.embed;
  if (embed.empty()) {
    embed.assign(sizes.begin() + 1, sizes.end());
    embed.back() = padded ? 2 * (plan.n.back() / 2 + 1) : last;
  }
  std::vector<int64_t> strides(sizes.size());
  int64_t step = layout.stride;
  for (size_t i = embed.size(); i-- > 0;) {
    strides[i + 1] = step;
    step *= embed[i];
  }
  strides[0] = layout.embed.empty() ? step : layout.distance;
  return at::from_blob(data, sizes, strides, at::TensorOptions().dtype(type));
}

at::ScalarType computed(at::ScalarType type) {
  return type == at::kHalf ? at::kFloat : type == at::kComplexHalf ? at::kComplexFloat : type;
}

void transform(const Plan& plan, void* in, void* out, bool forward) {
  const int64_t n = plan.n.back(), half = n / 2 + 1;
  const bool from_real = !c10::isComplexType(plan.in_type), to_real = !c10::isComplexType(plan.out_type);
  const bool in_place = in == out;
  const at::Tensor source =
      side(plan, in, plan.in, plan.in_type, to_real ? half : n, from_real && in_place).to(computed(plan.in_type));
  const at::Tensor target = side(plan, out, plan.out, plan.out_type, from_real ? half : n, to_real && in_place);
  std::vector<int64_t> dims(plan.n.size());
  std::iota(dims.begin(), dims.end(), 1);
  const at::Tensor result = from_real ? at::_fft_r2c(source, dims, 0, /*onesided=*/true)
      : to_real                       ? at::_fft_c2r(source, dims, 0, n)
                                      : at::_fft_c2c(source, dims, 0, forward);
  target.copy_(result);
}

mufftResult_t execute(
    const char* name, mufftHandle handle, void* in, void* out, int direction, std::optional<at::ScalarType> in_type,
    std::optional<at::ScalarType> out_type) {
  const std::shared_ptr<Plan> plan = find(handle);
  if (plan == nullptr || !plan->made) {
    return MUFFT_INVALID_PLAN;
  }
  if (in == nullptr || out == nullptr || (direction != MUFFT_FORWARD && direction != MUFFT_INVERSE)) {
    return MUFFT_INVALID_VALUE;
  }
  if (!plan->allocates && plan->area == nullptr) {
    return MUFFT_NO_WORKSPACE;
  }
  if ((in_type && *in_type != plan->in_type) || (out_type && *out_type != plan->out_type)) {
    return MUFFT_INVALID_TYPE;
  }
  return result_of(musa_emulator::math::enqueue(plan->stream, name, [plan = *plan, in, out, direction] {
    transform(plan, in, out, direction == MUFFT_FORWARD);
  }));
}

template <class Body>
mufftResult_t with_plan(mufftHandle handle, Body&& body) {
  const std::shared_ptr<Plan> plan = find(handle);
  return plan != nullptr ? body(*plan) : MUFFT_INVALID_PLAN;
}

} // namespace

mufftResult_t mufftGetVersion(int* version) {
  if (version == nullptr) {
    return MUFFT_INVALID_VALUE;
  }
  *version = MUFFT_VERSION;
  return MUFFT_SUCCESS;
}

mufftResult_t mufftCreate(mufftHandle* plan) {
  return call<"mufftCreate">([&] { return create(plan, [](mufftHandle) { return MUFFT_SUCCESS; }); });
}

mufftResult_t mufftDestroy(mufftHandle plan) {
  return call<"mufftDestroy", kReleases>([&] {
    const std::lock_guard lock(table_mutex);
    return table().erase(plan) != 0 ? MUFFT_SUCCESS : MUFFT_INVALID_PLAN;
  });
}

mufftResult_t mufftSetStream(mufftHandle handle, musaStream_t stream) {
  return call<"mufftSetStream">([&] {
    return with_plan(handle, [&](Plan& plan) {
      plan.stream = stream;
      return MUFFT_SUCCESS;
    });
  });
}

mufftResult_t mufftSetAutoAllocation(mufftHandle handle, int automatic) {
  return call<"mufftSetAutoAllocation">([&] {
    return with_plan(handle, [&](Plan& plan) {
      plan.allocates = automatic != 0;
      return MUFFT_SUCCESS;
    });
  });
}

mufftResult_t mufftSetWorkArea(mufftHandle handle, void* area) {
  return call<"mufftSetWorkArea">([&] {
    return with_plan(handle, [&](Plan& plan) {
      plan.area = area;
      return MUFFT_SUCCESS;
    });
  });
}

mufftResult_t mufftGetSize(mufftHandle handle, size_t* bytes) {
  return call<"mufftGetSize">([&] {
    return with_plan(handle, [&](Plan& plan) {
      if (bytes == nullptr) {
        return MUFFT_INVALID_VALUE;
      }
      *bytes = plan.workspace;
      return MUFFT_SUCCESS;
    });
  });
}

mufftResult_t mufftMakePlanMany(
    mufftHandle plan, int rank, int* n, int* inembed, int istride, int idist, int* onembed, int ostride, int odist,
    mufftType_t type, int batch, size_t* bytes) {
  return call<"mufftMakePlanMany">(
      [&] { return make<int>(plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, bytes); });
}
mufftResult_t mufftMakePlanMany64(
    mufftHandle plan, int rank, long long* n, long long* inembed, long long istride, long long idist,
    long long* onembed, long long ostride, long long odist, mufftType_t type, long long batch, size_t* bytes) {
  return call<"mufftMakePlanMany64">([&] {
    return make<long long>(plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, bytes);
  });
}
mufftResult_t mufftMakePlan1d(mufftHandle plan, int nx, mufftType_t type, int batch, size_t* bytes) {
  return mufftMakePlanMany(plan, 1, &nx, nullptr, 1, 0, nullptr, 1, 0, type, batch, bytes);
}
mufftResult_t mufftMakePlan2d(mufftHandle plan, int nx, int ny, mufftType_t type, size_t* bytes) {
  int n[] = {nx, ny};
  return mufftMakePlanMany(plan, 2, n, nullptr, 1, 0, nullptr, 1, 0, type, 1, bytes);
}
mufftResult_t mufftMakePlan3d(mufftHandle plan, int nx, int ny, int nz, mufftType_t type, size_t* bytes) {
  int n[] = {nx, ny, nz};
  return mufftMakePlanMany(plan, 3, n, nullptr, 1, 0, nullptr, 1, 0, type, 1, bytes);
}

mufftResult_t mufftPlanMany(
    mufftHandle* plan, int rank, int* n, int* inembed, int istride, int idist, int* onembed, int ostride, int odist,
    mufftType_t type, int batch) {
  return call<"mufftPlanMany">([&] {
    return create(plan, [&](mufftHandle made) {
      return make<int>(made, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, nullptr);
    });
  });
}
mufftResult_t mufftPlan1d(mufftHandle* plan, int nx, mufftType_t type, int batch) {
  return mufftPlanMany(plan, 1, &nx, nullptr, 1, 0, nullptr, 1, 0, type, batch);
}
mufftResult_t mufftPlan2d(mufftHandle* plan, int nx, int ny, mufftType_t type) {
  int n[] = {nx, ny};
  return mufftPlanMany(plan, 2, n, nullptr, 1, 0, nullptr, 1, 0, type, 1);
}
mufftResult_t mufftPlan3d(mufftHandle* plan, int nx, int ny, int nz, mufftType_t type) {
  int n[] = {nx, ny, nz};
  return mufftPlanMany(plan, 3, n, nullptr, 1, 0, nullptr, 1, 0, type, 1);
}

mufftResult_t mufftXtMakePlanMany(
    mufftHandle plan, int rank, long long* n, long long* inembed, long long istride, long long idist,
    musaDataType inputtype, long long* onembed, long long ostride, long long odist, musaDataType outputtype,
    long long batch, size_t* bytes, musaDataType executiontype) {
  return call<"mufftXtMakePlanMany">([&] {
    const std::optional<at::ScalarType> in = scalar_type(inputtype), out = scalar_type(outputtype),
                                        execution = scalar_type(executiontype);
    if (!in || !out || !execution || (!c10::isComplexType(*in) && !c10::isComplexType(*out)) ||
        c10::toRealValueType(*in) != c10::toRealValueType(*out)) {
      return MUFFT_INVALID_TYPE;
    }
    return make(
        plan, rank, n, layout(inembed, rank, istride, idist), layout(onembed, rank, ostride, odist), *in, *out, batch,
        bytes);
  });
}

mufftResult_t mufftXtExec(mufftHandle plan, void* in, void* out, int direction) {
  return call<"mufftXtExec">(
      [&] { return execute("mufftXtExec", plan, in, out, direction, std::nullopt, std::nullopt); });
}

#define EXECUTE(name, In, Out, in_type, out_type) \
  mufftResult_t name(mufftHandle plan, In* in, Out* out) { \
    return call<#name>([&] { return execute(#name, plan, in, out, MUFFT_FORWARD, in_type, out_type); }); \
  }
#define EXECUTE_EITHER_WAY(name, Type, type) \
  mufftResult_t name(mufftHandle plan, Type* in, Type* out, int direction) { \
    return call<#name>([&] { return execute(#name, plan, in, out, direction, type, type); }); \
  }
EXECUTE_EITHER_WAY(mufftExecC2C, mufftComplex, at::kComplexFloat)
EXECUTE_EITHER_WAY(mufftExecZ2Z, mufftDoubleComplex, at::kComplexDouble)
EXECUTE(mufftExecR2C, mufftReal, mufftComplex, at::kFloat, at::kComplexFloat)
EXECUTE(mufftExecC2R, mufftComplex, mufftReal, at::kComplexFloat, at::kFloat)
EXECUTE(mufftExecD2Z, mufftDoubleReal, mufftDoubleComplex, at::kDouble, at::kComplexDouble)
EXECUTE(mufftExecZ2D, mufftDoubleComplex, mufftDoubleReal, at::kComplexDouble, at::kDouble)
