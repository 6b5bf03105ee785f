// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// muRAND's host interface on torch's Philox engine: a generator is a seed and an index into the seed's sequence. A
// quasi-random generator is an index into Sobol's sequence, with torch's direction numbers.
#include "murand_host.h"

#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/_sobol_engine_initialize_state.h>
#include <ATen/ops/zeros.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "engine/api.h"
#include "support/task.h"

struct murandGenerator_st {
  static constexpr uint32_t kAlive = 0x4d52414e;
  uint32_t magic = kAlive; // first, so that a stale handle is detected
  murandRngType_t type = MURAND_RNG_PSEUDO_DEFAULT;
  musaStream_t stream = nullptr;
  uint64_t seed = 0;
  uint64_t next = 0; // index of the next 32-bit number, or of the next point
  unsigned dimensions = 1; // of a point

  bool quasi() const { return type >= MURAND_RNG_QUASI_DEFAULT; }
};

namespace {

using musa_emulator::api;
using musa_emulator::kReleases;

bool alive(murandGenerator_t generator) {
  return generator != nullptr && generator->magic == murandGenerator_st::kAlive;
}

murandStatus_t status_of(musaError_t error) {
  switch (error) {
    case musaSuccess: return MURAND_STATUS_SUCCESS;
    case musaErrorMemoryAllocation: return MURAND_STATUS_ALLOCATION_FAILED;
    default: return MURAND_STATUS_LAUNCH_FAILURE;
  }
}

// The 32-bit numbers of a seed, from an index on.
class Sequence {
 public:
  Sequence(uint64_t seed, uint64_t index) : engine_(seed, 0, index / 4) {
    for (uint64_t i = 0; i < index % 4; ++i) {
      engine_();
    }
  }
  uint32_t word() { return engine_(); }
  float uniform() { return (static_cast<float>(word() >> 8) + 1.0f) * 0x1p-24f; }
  double uniform_double() {
    const uint64_t high = word();
    return (static_cast<double>((high << 32 | word()) >> 11) + 1.0) * 0x1p-53;
  }

 private:
  at::Philox4_32 engine_;
};

// Sobol's sequence with the direction numbers of Joe and Kuo (Constructing Sobol sequences with better
// two-dimensional projections, 2008). In Gray code order, consecutive points differ by one direction number (Antonov
// and Saleev, 1979).
class Points {
 public:
  static constexpr int kBits = 30; // bits of torch's direction numbers, enough for kCount points
  static constexpr uint64_t kCount = uint64_t{1} << kBits;

  explicit Points(int64_t dimensions) : directions_(at::zeros({dimensions, kBits}, at::kLong)) {
    at::_sobol_engine_initialize_state_(directions_, dimensions);
  }
  // Calls emit(i, coordinate) for the points from `index` on. A coordinate is a numerator over 2^kBits.
  template <class Emit>
  void walk(int64_t dimension, uint64_t index, size_t count, Emit&& emit) const {
    const int64_t* directions = directions_.const_data_ptr<int64_t>() + dimension * kBits;
    uint64_t coordinate = 0;
    for (uint64_t gray = index ^ index >> 1; gray != 0; gray &= gray - 1) {
      coordinate ^= static_cast<uint64_t>(directions[std::countr_zero(gray)]);
    }
    for (size_t i = 0; i < count; ++i, ++index) {
      emit(i, coordinate);
      if (i + 1 < count) { // the last point has no successor
        coordinate ^= static_cast<uint64_t>(directions[std::countr_one(index)]);
      }
    }
  }

 private:
  at::Tensor directions_;
};

// Enqueues the coordinates of the next points, one dimension after the other: output[k] = convert(coordinate).
template <musa_emulator::ApiName Name, class T, class Convert>
murandStatus_t generate_points(murandGenerator_t generator, T* output, size_t count, Convert convert) {
  const unsigned dimensions = generator->dimensions;
  if (count % dimensions != 0) {
    return MURAND_STATUS_LENGTH_NOT_MULTIPLE;
  }
  const size_t points = count / dimensions;
  if (output == nullptr || generator->next > Points::kCount || points > Points::kCount - generator->next) {
    return count == 0 ? MURAND_STATUS_SUCCESS : MURAND_STATUS_OUT_OF_RANGE;
  }
  return status_of(api<Name>([&] {
    const musaError_t status = musa_emulator::math::enqueue(
        generator->stream, Name.text, [from = generator->next, dimensions, points, output, convert] {
          const Points sequence(dimensions);
          for (unsigned dimension = 0; dimension < dimensions; ++dimension) {
            T* const row = output + dimension * points;
            sequence.walk(
                dimension, from, points, [&](size_t i, uint64_t coordinate) { row[i] = convert(coordinate); });
          }
        });
    if (status == musaSuccess) {
      generator->next += points;
    }
    return status;
  }));
}

// Converts a coordinate to a fraction. Half a unit in the last place of the type's integers keeps it above 0.
double fraction(murandRngType_t type, uint64_t coordinate) {
  return static_cast<double>(coordinate) * 0x1p-30 + (type == MURAND_RNG_QUASI_SOBOL64 ? 0x1p-65 : 0x1p-33);
}

// Enqueues `fill(sequence)`, which uses `words` numbers of the sequence. The generator's index advances immediately.
template <musa_emulator::ApiName Name, class Fill>
murandStatus_t generate(murandGenerator_t generator, const void* output, size_t count, size_t words, Fill&& fill) {
  if (!alive(generator)) {
    return MURAND_STATUS_NOT_INITIALIZED;
  }
  if (generator->quasi()) {
    return MURAND_STATUS_TYPE_ERROR;
  }
  if (count == 0) {
    return MURAND_STATUS_SUCCESS;
  }
  if (output == nullptr) {
    return MURAND_STATUS_OUT_OF_RANGE;
  }
  const musaError_t error = api<Name>([&] {
    const musaError_t status = musa_emulator::math::enqueue(
        generator->stream, Name.text, [seed = generator->seed, from = generator->next, fill] {
          Sequence sequence(seed, from);
          fill(sequence);
        });
    if (status == musaSuccess) {
      generator->next += words;
    }
    return status;
  });
  return status_of(error);
}

// Normal numbers in pairs, with the method of Box and Muller (A note on the generation of random normal deviates,
// 1958).
template <musa_emulator::ApiName Name, class T, class Uniform, class Finish>
murandStatus_t normal(
    murandGenerator_t generator, T* output, size_t count, size_t words, T mean, T stddev, Uniform uniform,
    Finish finish) {
  if (count % 2 != 0) {
    return alive(generator) ? MURAND_STATUS_LENGTH_NOT_MULTIPLE : MURAND_STATUS_NOT_INITIALIZED;
  }
  if (!(stddev >= 0)) {
    return alive(generator) ? MURAND_STATUS_OUT_OF_RANGE : MURAND_STATUS_NOT_INITIALIZED;
  }
  return generate<Name>(generator, output, count, words, [=](Sequence& sequence) {
    for (size_t i = 0; i < count; i += 2) {
      const T radius = std::sqrt(T(-2) * std::log(uniform(sequence)));
      const T angle = T(2 * M_PI) * uniform(sequence);
      output[i] = finish(mean + stddev * radius * std::cos(angle));
      output[i + 1] = finish(mean + stddev * radius * std::sin(angle));
    }
  });
}

float uniform_of(Sequence& sequence) { return sequence.uniform(); }
double uniform_double_of(Sequence& sequence) { return sequence.uniform_double(); }

} // namespace

murandStatus_t murandGetVersion(int* version) {
  if (version == nullptr) {
    return MURAND_STATUS_OUT_OF_RANGE;
  }
  *version = MURAND_VERSION;
  return MURAND_STATUS_SUCCESS;
}

murandStatus_t murandCreateGenerator(murandGenerator_t* generator, murandRngType_t type) {
  if (generator == nullptr) {
    return MURAND_STATUS_OUT_OF_RANGE;
  }
  const bool quasi =
      type == MURAND_RNG_QUASI_DEFAULT || type == MURAND_RNG_QUASI_SOBOL32 || type == MURAND_RNG_QUASI_SOBOL64;
  if (type < MURAND_RNG_PSEUDO_DEFAULT || (type >= MURAND_RNG_QUASI_DEFAULT && !quasi)) {
    return MURAND_STATUS_TYPE_ERROR;
  }
  const musaError_t error = api<"murandCreateGenerator">([&] {
    int device;
    const musaError_t status = musaGetDevice(&device);
    if (status == musaSuccess) {
      *generator = new murandGenerator_st;
      (*generator)->type = type;
    }
    return status;
  });
  return error == musaSuccess              ? MURAND_STATUS_SUCCESS
      : error == musaErrorMemoryAllocation ? MURAND_STATUS_ALLOCATION_FAILED
                                           : MURAND_STATUS_INITIALIZATION_FAILED;
}

murandStatus_t murandDestroyGenerator(murandGenerator_t generator) {
  if (!alive(generator)) {
    return MURAND_STATUS_NOT_INITIALIZED;
  }
  return status_of(api<"murandDestroyGenerator", kReleases>([&] {
    generator->magic = 0;
    delete generator;
    return musaSuccess;
  }));
}

murandStatus_t murandSetStream(murandGenerator_t generator, musaStream_t stream) {
  if (!alive(generator)) {
    return MURAND_STATUS_NOT_INITIALIZED;
  }
  generator->stream = stream;
  return MURAND_STATUS_SUCCESS;
}

murandStatus_t murandSetPseudoRandomGeneratorSeed(murandGenerator_t generator, unsigned long long seed) {
  if (!alive(generator)) {
    return MURAND_STATUS_NOT_INITIALIZED;
  }
  if (generator->quasi()) {
    return MURAND_STATUS_TYPE_ERROR;
  }
  generator->seed = seed;
  generator->next = 0;
  return MURAND_STATUS_SUCCESS;
}

murandStatus_t murandSetGeneratorOffset(murandGenerator_t generator, unsigned long long offset) {
  if (!alive(generator)) {
    return MURAND_STATUS_NOT_INITIALIZED;
  }
  generator->next = offset;
  return MURAND_STATUS_SUCCESS;
}

murandStatus_t murandSetGeneratorOrdering(murandGenerator_t generator, murandOrdering_t order) {
  if (!alive(generator)) {
    return MURAND_STATUS_NOT_INITIALIZED;
  }
  const bool known = generator->quasi()
      ? order == MURAND_ORDERING_QUASI_DEFAULT
      : order >= MURAND_ORDERING_PSEUDO_BEST && order <= MURAND_ORDERING_PSEUDO_SEEDED;
  return known ? MURAND_STATUS_SUCCESS : MURAND_STATUS_OUT_OF_RANGE;
}

murandStatus_t murandSetQuasiRandomGeneratorDimensions(murandGenerator_t generator, unsigned int dimensions) {
  if (!alive(generator)) {
    return MURAND_STATUS_NOT_INITIALIZED;
  }
  if (!generator->quasi()) {
    return MURAND_STATUS_TYPE_ERROR;
  }
  if (dimensions < 1 || dimensions > 20000) {
    return MURAND_STATUS_OUT_OF_RANGE;
  }
  generator->dimensions = dimensions;
  generator->next = 0;
  return MURAND_STATUS_SUCCESS;
}

murandStatus_t murandGenerate(murandGenerator_t generator, unsigned int* output, size_t count) {
  if (alive(generator) && generator->quasi() && generator->type != MURAND_RNG_QUASI_SOBOL64) {
    return generate_points<"murandGenerate">(
        generator, output, count, [](uint64_t coordinate) { return static_cast<unsigned>(coordinate << 2); });
  }
  return generate<"murandGenerate">(generator, output, count, count, [=](Sequence& sequence) {
    for (size_t i = 0; i < count; ++i) {
      output[i] = sequence.word();
    }
  });
}

murandStatus_t murandGenerateUniform(murandGenerator_t generator, float* output, size_t count) {
  if (alive(generator) && generator->quasi()) {
    return generate_points<"murandGenerateUniform">(
        generator, output, count,
        [type = generator->type](uint64_t coordinate) { return static_cast<float>(fraction(type, coordinate)); });
  }
  return generate<"murandGenerateUniform">(generator, output, count, count, [=](Sequence& sequence) {
    for (size_t i = 0; i < count; ++i) {
      output[i] = sequence.uniform();
    }
  });
}

murandStatus_t murandGenerateUniformDouble(murandGenerator_t generator, double* output, size_t count) {
  if (alive(generator) && generator->quasi()) {
    return generate_points<"murandGenerateUniformDouble">(
        generator, output, count, [type = generator->type](uint64_t coordinate) { return fraction(type, coordinate); });
  }
  return generate<"murandGenerateUniformDouble">(generator, output, count, 2 * count, [=](Sequence& sequence) {
    for (size_t i = 0; i < count; ++i) {
      output[i] = sequence.uniform_double();
    }
  });
}

murandStatus_t murandGenerateNormal(
    murandGenerator_t generator, float* output, size_t count, float mean, float stddev) {
  return normal<"murandGenerateNormal">(
      generator, output, count, count, mean, stddev, uniform_of, [](float x) { return x; });
}
murandStatus_t murandGenerateNormalDouble(
    murandGenerator_t generator, double* output, size_t count, double mean, double stddev) {
  return normal<"murandGenerateNormalDouble">(
      generator, output, count, 2 * count, mean, stddev, uniform_double_of, [](double x) { return x; });
}
murandStatus_t murandGenerateLogNormal(
    murandGenerator_t generator, float* output, size_t count, float mean, float stddev) {
  return normal<"murandGenerateLogNormal">(
      generator, output, count, count, mean, stddev, uniform_of, [](float x) { return std::exp(x); });
}
murandStatus_t murandGenerateLogNormalDouble(
    murandGenerator_t generator, double* output, size_t count, double mean, double stddev) {
  return normal<"murandGenerateLogNormalDouble">(
      generator, output, count, 2 * count, mean, stddev, uniform_double_of, [](double x) { return std::exp(x); });
}
