// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Programs with one mistake each, and the same programs without it.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "musa_runtime.h"

namespace {

void check(musaError_t status) {
  if (status != musaSuccess) {
    std::fprintf(stderr, "known_bad: %s\n", musaGetErrorName(status));
    std::exit(3);
  }
}

// Two streams write the same variable, which is a race without an event between them.
int two_streams(bool ordered) {
  musaStream_t first = nullptr;
  musaStream_t second = nullptr;
  musaEvent_t event = nullptr;
  check(musaStreamCreateWithFlags(&first, musaStreamNonBlocking));
  check(musaStreamCreateWithFlags(&second, musaStreamNonBlocking));
  check(musaEventCreateWithFlags(&event, musaEventDisableTiming));
  int shared = 0;
  const auto increment = [](void* data) {
    for (int i = 0; i < 100; ++i) {
      ++*static_cast<int*>(data);
      usleep(200); // long enough for the other stream to run at the same time
    }
  };
  check(musaLaunchHostFunc(first, increment, &shared));
  if (ordered) {
    check(musaEventRecord(event, first));
    check(musaStreamWaitEvent(second, event, 0));
  }
  check(musaLaunchHostFunc(second, increment, &shared));
  check(musaDeviceSynchronize());
  check(musaEventDestroy(event));
  check(musaStreamDestroy(first));
  check(musaStreamDestroy(second));
  return 0;
}

// Copies one byte more than the host buffer holds. The device allocation is large enough, so only a tool that
// checks host memory can detect it.
int host_overrun(bool right) {
  void* device = nullptr;
  check(musaMalloc(&device, 4096));
  std::vector<char> host(100);
  check(musaMemcpy(device, host.data(), right ? 100 : 101, musaMemcpyHostToDevice));
  check(musaFree(device));
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const char* task = argc > 1 ? argv[1] : "";
  if (std::strcmp(task, "unordered-streams") == 0) {
    return two_streams(false);
  }
  if (std::strcmp(task, "ordered-streams") == 0) {
    return two_streams(true);
  }
  if (std::strcmp(task, "host-overrun") == 0) {
    return host_overrun(false);
  }
  if (std::strcmp(task, "host-copy") == 0) {
    return host_overrun(true);
  }
  std::fprintf(stderr, "known_bad: unknown task %s\n", task);
  return 3;
}
