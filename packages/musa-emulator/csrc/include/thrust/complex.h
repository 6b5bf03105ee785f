// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The subset of thrust::complex that torch's headers use, implemented with std::complex.
#if __has_include_next(<thrust/complex.h>) // prefer muThrust's header
#pragma GCC system_header // -pedantic rejects #include_next elsewhere
#include_next <thrust/complex.h>
#elif !defined(THRUST_COMPLEX_H)
#define THRUST_COMPLEX_H
#include <complex>

#include "../host_defines.h"

namespace thrust {

template <class T>
struct complex {
  using value_type = T;

  __host__ __device__ complex(const T& real = T(), const T& imag = T()) : real_(real), imag_(imag) {}
  template <class U>
  __host__ __device__ complex(const complex<U>& other)
      : real_(static_cast<T>(other.real())), imag_(static_cast<T>(other.imag())) {}
  template <class U>
  __host__ __device__ complex(const std::complex<U>& other)
      : real_(static_cast<T>(other.real())), imag_(static_cast<T>(other.imag())) {}
  __host__ __device__ operator std::complex<T>() const { return {real_, imag_}; }

  __host__ __device__ T real() const { return real_; }
  __host__ __device__ T imag() const { return imag_; }
  __host__ __device__ void real(T value) { real_ = value; }
  __host__ __device__ void imag(T value) { imag_ = value; }

  __host__ __device__ complex& operator+=(const complex& other) {
    return *this = std::complex<T>(*this) + std::complex<T>(other);
  }
  __host__ __device__ complex& operator-=(const complex& other) {
    return *this = std::complex<T>(*this) - std::complex<T>(other);
  }
  __host__ __device__ complex& operator*=(const complex& other) {
    return *this = std::complex<T>(*this) * std::complex<T>(other);
  }
  __host__ __device__ complex& operator/=(const complex& other) {
    return *this = std::complex<T>(*this) / std::complex<T>(other);
  }
  __host__ __device__ complex operator-() const { return {-real_, -imag_}; }
  friend __host__ __device__ complex operator+(complex a, const complex& b) { return a += b; }
  friend __host__ __device__ complex operator-(complex a, const complex& b) { return a -= b; }
  friend __host__ __device__ complex operator*(complex a, const complex& b) { return a *= b; }
  friend __host__ __device__ complex operator/(complex a, const complex& b) { return a /= b; }
  friend __host__ __device__ bool operator==(const complex& a, const complex& b) {
    return a.real_ == b.real_ && a.imag_ == b.imag_;
  }
  friend __host__ __device__ bool operator!=(const complex& a, const complex& b) { return !(a == b); }

 private:
  T real_, imag_;
};

template <class T>
__host__ __device__ inline T abs(const complex<T>& z) {
  return std::abs(std::complex<T>(z));
}
template <class T>
__host__ __device__ inline T arg(const complex<T>& z) {
  return std::arg(std::complex<T>(z));
}
template <class T>
__host__ __device__ inline T norm(const complex<T>& z) {
  return std::norm(std::complex<T>(z));
}
template <class T>
__host__ __device__ inline complex<T> conj(const complex<T>& z) {
  return {z.real(), -z.imag()};
}
// Not std::polar, which requires a magnitude that is neither negative nor NaN.
template <class T>
__host__ __device__ inline complex<T> polar(const T& magnitude, const T& angle = T()) {
  return {magnitude * std::cos(angle), magnitude * std::sin(angle)};
}

#define THRUST_COMPLEX_FUNCTION(name) \
  template <class T> \
  __host__ __device__ inline complex<T> name(const complex<T>& z) { \
    return std::name(std::complex<T>(z)); \
  }
THRUST_COMPLEX_FUNCTION(proj)
THRUST_COMPLEX_FUNCTION(exp)
THRUST_COMPLEX_FUNCTION(log)
THRUST_COMPLEX_FUNCTION(log10)
THRUST_COMPLEX_FUNCTION(sqrt)
THRUST_COMPLEX_FUNCTION(sin)
THRUST_COMPLEX_FUNCTION(cos)
THRUST_COMPLEX_FUNCTION(tan)
THRUST_COMPLEX_FUNCTION(asin)
THRUST_COMPLEX_FUNCTION(acos)
THRUST_COMPLEX_FUNCTION(atan)
THRUST_COMPLEX_FUNCTION(sinh)
THRUST_COMPLEX_FUNCTION(cosh)
THRUST_COMPLEX_FUNCTION(tanh)
THRUST_COMPLEX_FUNCTION(asinh)
THRUST_COMPLEX_FUNCTION(acosh)
THRUST_COMPLEX_FUNCTION(atanh)
#undef THRUST_COMPLEX_FUNCTION

template <class T>
__host__ __device__ inline complex<T> pow(const complex<T>& base, const complex<T>& exponent) {
  return std::pow(std::complex<T>(base), std::complex<T>(exponent));
}
template <class T>
__host__ __device__ inline complex<T> pow(const complex<T>& base, const T& exponent) {
  return std::pow(std::complex<T>(base), exponent);
}
template <class T>
__host__ __device__ inline complex<T> pow(const T& base, const complex<T>& exponent) {
  return std::pow(base, std::complex<T>(exponent));
}

} // namespace thrust
#endif
