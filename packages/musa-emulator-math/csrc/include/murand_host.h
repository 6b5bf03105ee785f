// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Random numbers in device memory (libmurand). Equal types, seeds and offsets give equal numbers. All pseudo-random
// types use Philox 4x32-10 here, so the numbers of the other types differ from a GPU's. Quasi-random types use
// Sobol's sequence.
#ifndef MUSA_MURAND_HOST_H
#define MUSA_MURAND_HOST_H

#include "musa_runtime.h"

#define MURAND_VERSION 10401

typedef struct murandGenerator_st* murandGenerator_t;

typedef enum murandStatus {
  MURAND_STATUS_SUCCESS = 0,
  MURAND_STATUS_VERSION_MISMATCH = 100,
  MURAND_STATUS_NOT_INITIALIZED = 101,
  MURAND_STATUS_ALLOCATION_FAILED = 102,
  MURAND_STATUS_TYPE_ERROR = 103,
  MURAND_STATUS_OUT_OF_RANGE = 104,
  MURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
  MURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
  MURAND_STATUS_LAUNCH_FAILURE = 201,
  MURAND_STATUS_PREEXISTING_FAILURE = 202,
  MURAND_STATUS_INITIALIZATION_FAILED = 203,
  MURAND_STATUS_ARCH_MISMATCH = 204,
  MURAND_STATUS_INTERNAL_ERROR = 999
} murandStatus_t;

typedef enum murandRngType {
  MURAND_RNG_PSEUDO_DEFAULT = 100,
  MURAND_RNG_PSEUDO_XORWOW = 101,
  MURAND_RNG_PSEUDO_MRG32K3A = 121,
  MURAND_RNG_PSEUDO_MTGP32 = 141,
  MURAND_RNG_PSEUDO_MT19937 = 142,
  MURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
  MURAND_RNG_QUASI_DEFAULT = 200,
  MURAND_RNG_QUASI_SOBOL32 = 201,
  MURAND_RNG_QUASI_SOBOL64 = 203
} murandRngType_t;

typedef enum murandOrdering {
  MURAND_ORDERING_PSEUDO_BEST = 100,
  MURAND_ORDERING_PSEUDO_DEFAULT = 101,
  MURAND_ORDERING_PSEUDO_SEEDED = 102,
  MURAND_ORDERING_QUASI_DEFAULT = 201
} murandOrdering_t;

MUSA_EXTERN_C_BEGIN

MUSA_PUBLIC murandStatus_t murandGetVersion(int* version);
MUSA_PUBLIC murandStatus_t murandCreateGenerator(murandGenerator_t* generator, murandRngType_t type);
MUSA_PUBLIC murandStatus_t murandDestroyGenerator(murandGenerator_t generator);
MUSA_PUBLIC murandStatus_t murandSetStream(murandGenerator_t generator, musaStream_t stream);
// Starts the sequence of the seed. Returns MURAND_STATUS_TYPE_ERROR for quasi-random types.
MUSA_PUBLIC murandStatus_t murandSetPseudoRandomGeneratorSeed(murandGenerator_t generator, unsigned long long seed);
// Sets the index of the next number, or of the next point of a quasi-random type.
MUSA_PUBLIC murandStatus_t murandSetGeneratorOffset(murandGenerator_t generator, unsigned long long offset);
// Each sequence has one order. Returns MURAND_STATUS_OUT_OF_RANGE for an order of the other kind of type.
MUSA_PUBLIC murandStatus_t murandSetGeneratorOrdering(murandGenerator_t generator, murandOrdering_t order);
// Sets the dimensions of each point, 1 to 20,000 (default 1). Returns MURAND_STATUS_TYPE_ERROR for pseudo-random
// types.
MUSA_PUBLIC murandStatus_t
murandSetQuasiRandomGeneratorDimensions(murandGenerator_t generator, unsigned int dimensions);

// Quasi-random types write the first coordinate of all points, then the second, and so on. Returns
// MURAND_STATUS_LENGTH_NOT_MULTIPLE unless the count is a multiple of the dimensions, MURAND_STATUS_OUT_OF_RANGE
// after the first 2^30 points, and MURAND_STATUS_TYPE_ERROR for MURAND_RNG_QUASI_SOBOL64, whose numbers have 64 bits.
MUSA_PUBLIC murandStatus_t murandGenerate(murandGenerator_t generator, unsigned int* output, size_t count);
// Values in (0, 1].
MUSA_PUBLIC murandStatus_t murandGenerateUniform(murandGenerator_t generator, float* output, size_t count);
MUSA_PUBLIC murandStatus_t murandGenerateUniformDouble(murandGenerator_t generator, double* output, size_t count);
// Returns MURAND_STATUS_LENGTH_NOT_MULTIPLE if the count is odd, and MURAND_STATUS_TYPE_ERROR for quasi-random types.
MUSA_PUBLIC murandStatus_t
murandGenerateNormal(murandGenerator_t generator, float* output, size_t count, float mean, float stddev);
MUSA_PUBLIC murandStatus_t
murandGenerateNormalDouble(murandGenerator_t generator, double* output, size_t count, double mean, double stddev);
MUSA_PUBLIC murandStatus_t
murandGenerateLogNormal(murandGenerator_t generator, float* output, size_t count, float mean, float stddev);
MUSA_PUBLIC murandStatus_t
murandGenerateLogNormalDouble(murandGenerator_t generator, double* output, size_t count, double mean, double stddev);

MUSA_EXTERN_C_END

#endif
