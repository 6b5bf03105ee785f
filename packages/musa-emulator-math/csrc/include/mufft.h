// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Fourier transforms on the device (libmufft). Neither direction is scaled: forward and inverse together multiply by
// the size.
#ifndef MUSA_MUFFT_H
#define MUSA_MUFFT_H

#include "library_types.h"
#include "muComplex.h"
#include "musa_runtime.h"

#define MUFFT_VERSION 10401
#define MUFFT_FORWARD (-1)
#define MUFFT_INVERSE 1

typedef int mufftHandle;
typedef float mufftReal;
typedef double mufftDoubleReal;
typedef muComplex mufftComplex;
typedef muDoubleComplex mufftDoubleComplex;

typedef enum mufftResult_t {
  MUFFT_SUCCESS = 0,
  MUFFT_INVALID_PLAN = 1,
  MUFFT_ALLOC_FAILED = 2,
  MUFFT_INVALID_TYPE = 3,
  MUFFT_INVALID_VALUE = 4,
  MUFFT_INTERNAL_ERROR = 5,
  MUFFT_EXEC_FAILED = 6,
  MUFFT_SETUP_FAILED = 7,
  MUFFT_INVALID_SIZE = 8,
  MUFFT_UNALIGNED_DATA = 9,
  MUFFT_INCOMPLETE_PARAMETER_LIST = 10,
  MUFFT_INVALID_DEVICE = 11,
  MUFFT_PARSE_ERROR = 12,
  MUFFT_NO_WORKSPACE = 13,
  MUFFT_NOT_IMPLEMENTED = 14,
  MUFFT_LICENSE_ERROR = 15,
  MUFFT_NOT_SUPPORTED = 16
} mufftResult_t;
typedef mufftResult_t mufftResult;

// Input and output type. R is real and C complex with float, D is real and Z complex with double.
typedef enum mufftType_t {
  MUFFT_R2C = 0x2a,
  MUFFT_C2R = 0x2c,
  MUFFT_C2C = 0x29,
  MUFFT_D2Z = 0x6a,
  MUFFT_Z2D = 0x6c,
  MUFFT_Z2Z = 0x69
} mufftType_t;
typedef mufftType_t mufftType;

MUSA_EXTERN_C_BEGIN

MUSA_PUBLIC mufftResult_t mufftGetVersion(int* version);
MUSA_PUBLIC mufftResult_t mufftCreate(mufftHandle* plan);
MUSA_PUBLIC mufftResult_t mufftDestroy(mufftHandle plan);
MUSA_PUBLIC mufftResult_t mufftSetStream(mufftHandle plan, musaStream_t stream);
// The default is 1: the plan allocates its workspace. With 0, an execution without a work area fails with
// MUFFT_NO_WORKSPACE. The contents of work areas are not used.
MUSA_PUBLIC mufftResult_t mufftSetAutoAllocation(mufftHandle plan, int automatic);
MUSA_PUBLIC mufftResult_t mufftSetWorkArea(mufftHandle plan, void* area);
MUSA_PUBLIC mufftResult_t mufftGetSize(mufftHandle plan, size_t* bytes);

MUSA_PUBLIC mufftResult_t mufftPlan1d(mufftHandle* plan, int nx, mufftType_t type, int batch);
MUSA_PUBLIC mufftResult_t mufftPlan2d(mufftHandle* plan, int nx, int ny, mufftType_t type);
MUSA_PUBLIC mufftResult_t mufftPlan3d(mufftHandle* plan, int nx, int ny, int nz, mufftType_t type);
// Element (x, y, z) of transform b is at b * dist + ((x * embed[1] + y) * embed[2] + z) * stride. If `embed` is null,
// the elements are contiguous, and stride and dist are ignored.
MUSA_PUBLIC mufftResult_t mufftPlanMany(
    mufftHandle* plan, int rank, int* n, int* inembed, int istride, int idist, int* onembed, int ostride, int odist,
    mufftType_t type, int batch);
MUSA_PUBLIC mufftResult_t mufftMakePlan1d(mufftHandle plan, int nx, mufftType_t type, int batch, size_t* bytes);
MUSA_PUBLIC mufftResult_t mufftMakePlan2d(mufftHandle plan, int nx, int ny, mufftType_t type, size_t* bytes);
MUSA_PUBLIC mufftResult_t mufftMakePlan3d(mufftHandle plan, int nx, int ny, int nz, mufftType_t type, size_t* bytes);
MUSA_PUBLIC mufftResult_t mufftMakePlanMany(
    mufftHandle plan, int rank, int* n, int* inembed, int istride, int idist, int* onembed, int ostride, int odist,
    mufftType_t type, int batch, size_t* bytes);
MUSA_PUBLIC mufftResult_t mufftMakePlanMany64(
    mufftHandle plan, int rank, long long* n, long long* inembed, long long istride, long long idist,
    long long* onembed, long long ostride, long long odist, mufftType_t type, long long batch, size_t* bytes);

MUSA_PUBLIC mufftResult_t mufftExecC2C(mufftHandle plan, mufftComplex* in, mufftComplex* out, int direction);
MUSA_PUBLIC mufftResult_t mufftExecR2C(mufftHandle plan, mufftReal* in, mufftComplex* out);
MUSA_PUBLIC mufftResult_t mufftExecC2R(mufftHandle plan, mufftComplex* in, mufftReal* out);
MUSA_PUBLIC mufftResult_t
mufftExecZ2Z(mufftHandle plan, mufftDoubleComplex* in, mufftDoubleComplex* out, int direction);
MUSA_PUBLIC mufftResult_t mufftExecD2Z(mufftHandle plan, mufftDoubleReal* in, mufftDoubleComplex* out);
MUSA_PUBLIC mufftResult_t mufftExecZ2D(mufftHandle plan, mufftDoubleComplex* in, mufftDoubleReal* out);

// Supported types: MUSA_R_ and MUSA_C_ with 16F, 32F and 64F.
MUSA_PUBLIC mufftResult_t mufftXtMakePlanMany(
    mufftHandle plan, int rank, long long* n, long long* inembed, long long istride, long long idist,
    musaDataType inputtype, long long* onembed, long long ostride, long long odist, musaDataType outputtype,
    long long batch, size_t* bytes, musaDataType executiontype);
MUSA_PUBLIC mufftResult_t mufftXtExec(mufftHandle plan, void* in, void* out, int direction);

MUSA_EXTERN_C_END

#endif
