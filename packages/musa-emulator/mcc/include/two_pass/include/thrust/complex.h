// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The subset of thrust::complex that torch's headers use, declared for host and device without definitions.
#pragma once

namespace thrust {

template <class T>
struct complex {
  __host__ __device__ complex(const T& real = T(), const T& imag = T());
  template <class U>
  __host__ __device__ complex(const complex<U>&);
  __host__ __device__ T real() const;
  __host__ __device__ T imag() const;
};

template <class T>
__host__ __device__ T abs(const complex<T>&);
template <class T>
__host__ __device__ T arg(const complex<T>&);
template <class T>
__host__ __device__ T norm(const complex<T>&);
template <class T>
__host__ __device__ complex<T> conj(const complex<T>&);
template <class T>
__host__ __device__ complex<T> proj(const complex<T>&);
template <class T>
__host__ __device__ complex<T> polar(const T&, const T& = T());

#define MCC_COMPLEX_FUNCTION(name) \
  template <class T> \
  __host__ __device__ complex<T> name(const complex<T>&);
MCC_COMPLEX_FUNCTION(exp)
MCC_COMPLEX_FUNCTION(log)
MCC_COMPLEX_FUNCTION(log10)
MCC_COMPLEX_FUNCTION(sqrt)
MCC_COMPLEX_FUNCTION(sin)
MCC_COMPLEX_FUNCTION(cos)
MCC_COMPLEX_FUNCTION(tan)
MCC_COMPLEX_FUNCTION(asin)
MCC_COMPLEX_FUNCTION(acos)
MCC_COMPLEX_FUNCTION(atan)
MCC_COMPLEX_FUNCTION(sinh)
MCC_COMPLEX_FUNCTION(cosh)
MCC_COMPLEX_FUNCTION(tanh)
MCC_COMPLEX_FUNCTION(asinh)
MCC_COMPLEX_FUNCTION(acosh)
MCC_COMPLEX_FUNCTION(atanh)
#undef MCC_COMPLEX_FUNCTION

template <class T>
__host__ __device__ complex<T> pow(const complex<T>&, const complex<T>&);
template <class T>
__host__ __device__ complex<T> pow(const complex<T>&, const T&);
template <class T>
__host__ __device__ complex<T> pow(const T&, const complex<T>&);

} // namespace thrust
