// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/Generator.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/TransformationHelper.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/nextafter.h>
#include <ATen/ops/searchsorted.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/random.muh"

namespace musa_ops_ported {
namespace {

using MaybeGenerator = std::optional<at::Generator>;

void uniform(at::TensorIteratorBase& iter, double from, double to, MaybeGenerator generator) {
  MUSA_DISPATCH(iter.dtype(), "uniform_", (MUSA_FLOATING), {
    const auto low = static_cast<scalar_t>(from);
    const auto high = static_cast<scalar_t>(to);
    const op_t range = static_cast<op_t>(high - low);
    fill_randomly<scalar_t, UniformNumbers<op_t>>(iter, generator, [=] __device__(op_t number) {
      // `number` is in (0, 1], the distribution covers [from, to).
      const auto value = static_cast<scalar_t>(number * range + low);
      return value == high ? low : value;
    });
  });
}

void normal(const at::TensorBase& self, double mean, double deviation, MaybeGenerator generator) {
  auto iter = at::TensorIterator::borrowing_nullary_op(self);
  MUSA_DISPATCH(iter.dtype(), "normal_", (MUSA_FLOATING), {
    const op_t middle = static_cast<op_t>(mean);
    const op_t width = static_cast<op_t>(deviation);
    fill_randomly<scalar_t, NormalNumbers<op_t>>(
        iter, generator, [=] __device__(op_t number) { return static_cast<scalar_t>(number * width + middle); });
  });
}

void log_normal(at::TensorIteratorBase& iter, double mean, double deviation, MaybeGenerator generator) {
  MUSA_DISPATCH(iter.dtype(), "log_normal_", (MUSA_FLOATING), {
    const op_t middle = static_cast<op_t>(mean);
    const op_t width = static_cast<op_t>(deviation);
    fill_randomly<scalar_t, NormalNumbers<op_t>>(iter, generator, [=] __device__(op_t number) {
      return static_cast<scalar_t>(std::exp(number * width + middle));
    });
  });
}

void exponential(at::TensorIteratorBase& iter, double lambda, MaybeGenerator generator) {
  MUSA_DISPATCH(iter.dtype(), "exponential_", (MUSA_FLOATING), {
    const op_t rate = static_cast<op_t>(lambda);
    fill_randomly<scalar_t, UniformNumbers<op_t>>(iter, generator, [=] __device__(op_t number) {
      // Keeps the logarithm of numbers next to 1 away from 0, so that samples are positive.
      constexpr op_t half_step = std::numeric_limits<op_t>::epsilon() / 2;
      const op_t logarithm = number >= 1 - half_step ? -half_step : std::log(number);
      return static_cast<scalar_t>(op_t(-1) / rate * logarithm);
    });
  });
}

void cauchy(at::TensorIteratorBase& iter, double median, double sigma, MaybeGenerator generator) {
  MUSA_DISPATCH(iter.dtype(), "cauchy_", (MUSA_FLOATING), {
    const op_t middle = static_cast<op_t>(median);
    const op_t width = static_cast<op_t>(sigma);
    fill_randomly<scalar_t, UniformNumbers<op_t>>(iter, generator, [=] __device__(op_t number) {
      return static_cast<scalar_t>(at::transformation::cauchy<op_t>(number, middle, width));
    });
  });
}

void geometric(at::TensorIteratorBase& iter, double p, MaybeGenerator generator) {
  MUSA_DISPATCH(iter.dtype(), "geometric_", (MUSA_REAL), {
    using real_t = std::conditional_t<std::is_integral_v<scalar_t>, float, op_t>;
    const real_t probability = static_cast<real_t>(p);
    fill_randomly<scalar_t, UniformNumbers<real_t>>(iter, generator, [=] __device__(real_t number) {
      return static_cast<scalar_t>(std::ceil(std::log(number) / std::log1p(-probability)));
    });
  });
}

void bernoulli_scalar(const at::TensorBase& self, double p, MaybeGenerator generator) {
  auto iter = at::TensorIterator::borrowing_nullary_op(self);
  MUSA_DISPATCH(iter.dtype(), "bernoulli_", (MUSA_REAL, at::kBool), {
    using real_t = std::conditional_t<std::is_same_v<scalar_t, double>, double, float>;
    const real_t probability = static_cast<real_t>(p);
    fill_randomly<scalar_t, UniformNumbers<real_t>>(
        iter, generator, [=] __device__(real_t number) { return static_cast<scalar_t>(number < probability); });
  });
}

// Draws in the order of torch's CUDA kernel: a thread has four adjacent elements and its own subsequence, of which
// ten numbers are reserved.
template <typename T, typename P>
void draw_bernoulli(const at::TensorBase& self, const at::TensorBase& p, const MaybeGenerator& generator) {
  const int64_t count = self.numel();
  if (count == 0) {
    return;
  }
  const at::PhiloxMusaState philox = reserve_numbers(10, generator);
  const auto offsets = offsets_of<2>(self.sizes(), {self.strides(), p.strides()});
  T* const out = self.mutable_data_ptr<T>();
  const P* const probabilities = p.const_data_ptr<P>();
  for_each((count + 3) / 4, [=] __device__(int64_t thread) {
    RandomState state = random_state(philox, thread);
    const float4 numbers = murand_uniform4(&state);
    for (int64_t i = 4 * thread; i < 4 * thread + 4 && i < count; ++i) {
      const auto at = offsets.all(i);
      const float probability = static_cast<float>(probabilities[at[1]]);
      CUDA_KERNEL_ASSERT(0 <= probability && probability <= 1);
      out[at[0]] = static_cast<T>((&numbers.x)[i - 4 * thread] <= probability);
    }
  });
}

void bernoulli_tensor(const at::TensorBase& self, const at::TensorBase& p, MaybeGenerator generator) {
  TORCH_CHECK(
      p.sizes() == self.sizes(), "bernoulli_: probabilities of shape ", p.sizes(), " for a tensor of ", self.sizes());
  at::assert_no_partial_overlap(self, p);
  MUSA_DISPATCH(self.scalar_type(), "bernoulli_", (MUSA_REAL, at::kBool), {
    switch (p.scalar_type()) {
      case at::kFloat: draw_bernoulli<scalar_t, float>(self, p, generator); break;
      case at::kDouble: draw_bernoulli<scalar_t, double>(self, p, generator); break;
      case at::kHalf: draw_bernoulli<scalar_t, at::Half>(self, p, generator); break;
      case at::kBFloat16: draw_bernoulli<scalar_t, at::BFloat16>(self, p, generator); break;
      default: TORCH_CHECK(false, "bernoulli_: probabilities must be of a floating point dtype, not ", p.scalar_type());
    }
  });
}

// ---- integers

void random(at::TensorIteratorBase& iter, MaybeGenerator generator) {
  MUSA_DISPATCH(iter.dtype(), "random_", (MUSA_REAL, at::kBool), {
    if constexpr (std::is_same_v<scalar_t, double> || std::is_same_v<scalar_t, int64_t>) {
      fill_randomly<scalar_t, Bits64>(
          iter, generator, [] __device__(uint64_t bits) { return at::transformation::uniform_int<scalar_t>(bits); });
    } else {
      fill_randomly<scalar_t, Bits32>(
          iter, generator, [] __device__(uint32_t bits) { return at::transformation::uniform_int<scalar_t>(bits); });
    }
  });
}

void random_from_to(at::TensorIteratorBase& iter, uint64_t range, int64_t base, MaybeGenerator generator) {
  MUSA_DISPATCH(iter.dtype(), "random_", (MUSA_REAL, MUSA_UNSIGNED, at::kBool), {
    // A remainder is biased towards small numbers; for 32 random bits this range keeps the bias below 5 %.
    if (range >= uint64_t{1} << 28) {
      fill_randomly<scalar_t, Bits64>(iter, generator, [=] __device__(uint64_t bits) {
        return at::transformation::uniform_int_from_to<scalar_t>(bits, range, base);
      });
    } else {
      fill_randomly<scalar_t, Bits32>(iter, generator, [=] __device__(uint32_t bits) {
        return at::transformation::uniform_int_from_to<scalar_t>(bits, range, base);
      });
    }
  });
}

void random_full_range(at::TensorIteratorBase& iter, MaybeGenerator generator) {
  MUSA_DISPATCH(iter.dtype(), "random_", (at::kLong, at::kDouble, at::kFloat, at::kBFloat16, at::kUInt64), {
    fill_randomly<scalar_t, Bits64>(iter, generator, [] __device__(uint64_t bits) {
      return at::transformation::uniform_int_full_range<scalar_t>(bits);
    });
  });
}

// ---- categories

// Scales a uniform number to the sum of the weights; the prefix sum that it falls below selects the category.
void multinomial(at::Tensor& result, const at::Tensor& self, int64_t count, MaybeGenerator generator) {
  at::assert_no_internal_overlap(result);
  const at::Tensor weights = self.to(at::kDouble);
  const at::Tensor sums = weights.cumsum(-1);
  const at::Tensor total = sums.narrow(-1, sums.size(-1) - 1, 1);
  TORCH_CHECK(
      weights.isfinite().logical_and(weights.ge(0)).all().item<bool>(),
      "invalid multinomial distribution: a probability is negative, infinite or not a number");
  TORCH_CHECK(
      total.gt(0).all().item<bool>(), "invalid multinomial distribution: the probabilities of a row sum up to 0");
  at::DimVector shape(self.sizes());
  shape.back() = count;
  const at::Tensor numbers = aten::empty(shape, weights.options()).uniform_(0, 1, generator).mul_(total);
  // Rounding may produce the sum itself, which belongs to no category.
  const at::Tensor below = at::minimum(numbers, at::nextafter(total, aten::zeros_like(total)));
  result.copy_(at::searchsorted(sums, below, /*out_int32=*/false, /*right=*/true));
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(uniform_stub, &musa_ops_ported::uniform)
REGISTER_PRIVATEUSE1_DISPATCH(normal_stub, &musa_ops_ported::normal)
REGISTER_PRIVATEUSE1_DISPATCH(log_normal_stub, &musa_ops_ported::log_normal)
REGISTER_PRIVATEUSE1_DISPATCH(exponential_stub, &musa_ops_ported::exponential)
REGISTER_PRIVATEUSE1_DISPATCH(cauchy_stub, &musa_ops_ported::cauchy)
REGISTER_PRIVATEUSE1_DISPATCH(geometric_stub, &musa_ops_ported::geometric)
REGISTER_PRIVATEUSE1_DISPATCH(bernoulli_scalar_stub, &musa_ops_ported::bernoulli_scalar)
REGISTER_PRIVATEUSE1_DISPATCH(bernoulli_tensor_stub, &musa_ops_ported::bernoulli_tensor)
REGISTER_PRIVATEUSE1_DISPATCH(multinomial_with_replacement_stub, &musa_ops_ported::multinomial)
REGISTER_PRIVATEUSE1_DISPATCH(random_stub, &musa_ops_ported::random)
REGISTER_PRIVATEUSE1_DISPATCH(random_from_to_stub, &musa_ops_ported::random_from_to)
REGISTER_PRIVATEUSE1_DISPATCH(random_full_64_bits_range_stub, &musa_ops_ported::random_full_range)
} // namespace at::native
