// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
//
// posix_malloc NBYTES ITERATIONS: prints nanoseconds for one malloc and free of NBYTES.
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const size_t nbytes = strtoull(argv[1], NULL, 10);
  const long iterations = strtol(argv[2], NULL, 10);
  void* volatile block; // volatile, because compilers may remove a malloc with an unused result
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (long i = 0; i < iterations; ++i) {
    block = malloc(nbytes);
    if (block == NULL) return 1;
    free(block);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%f\n", ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / iterations);
  return 0;
}
