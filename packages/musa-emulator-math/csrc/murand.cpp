// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// muRAND's host interface over torch's Philox engine: a generator is a seed and a place in the seed's sequence.
#include "murand_host.h"

#include <ATen/core/PhiloxRNGEngine.h>

#include <cmath>
#include <cstdint>

#include "engine/api.h"
#include "support/task.h"

struct murandGenerator_st {
  static constexpr uint32_t kAlive = 0x4d52414e;
  uint32_t magic = kAlive; // first, so that a stale handle is recognised
  musaStream_t stream = nullptr;
  uint64_t seed = 0;
  uint64_t next = 0; // index of the next number of 32 bits
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

// The numbers of 32 bits of a seed, from an index on.
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

// Enqueues `fill(sequence)`, which takes `words` numbers of the sequence; the generator stands behind them at once.
template <musa_emulator::ApiName Name, class Fill>
murandStatus_t generate(murandGenerator_t generator, const void* output, size_t count, size_t words, Fill&& fill) {
  if (!alive(generator)) {
    return MURAND_STATUS_NOT_INITIALIZED;
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

// Pairs, by the method of Box and Muller (A note on the generation of random normal deviates, 1958).
template <musa_emulator::ApiName Name, class T, class Uniform, class Finish>
murandStatus_t normal(
    murandGenerator_t generator, T* output, size_t count, size_t words, T mean, T stddev, Uniform uniform, Finish finish) {
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

float uniform_of(Sequence& sequence) {
  return sequence.uniform();
}
double uniform_double_of(Sequence& sequence) {
  return sequence.uniform_double();
}

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
  if (type < MURAND_RNG_PSEUDO_DEFAULT || type >= MURAND_RNG_QUASI_DEFAULT) {
    return MURAND_STATUS_TYPE_ERROR;
  }
  const musaError_t error = api<"murandCreateGenerator">([&] {
    int device;
    const musaError_t status = musaGetDevice(&device);
    if (status == musaSuccess) {
      *generator = new murandGenerator_st;
    }
    return status;
  });
  return error == musaSuccess ? MURAND_STATUS_SUCCESS
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

murandStatus_t murandGenerate(murandGenerator_t generator, unsigned int* output, size_t count) {
  return generate<"murandGenerate">(generator, output, count, count, [=](Sequence& sequence) {
    for (size_t i = 0; i < count; ++i) {
      output[i] = sequence.word();
    }
  });
}

murandStatus_t murandGenerateUniform(murandGenerator_t generator, float* output, size_t count) {
  return generate<"murandGenerateUniform">(generator, output, count, count, [=](Sequence& sequence) {
    for (size_t i = 0; i < count; ++i) {
      output[i] = sequence.uniform();
    }
  });
}

murandStatus_t murandGenerateUniformDouble(murandGenerator_t generator, double* output, size_t count) {
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
