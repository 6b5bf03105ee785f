// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/segfault.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

namespace musa_emulator {
namespace {

// Jump target if the kernel on this thread faults. Accessed without a call (initial-exec), because the fault handler
// reads it and a call could allocate.
constinit thread_local sigjmp_buf* recovery [[gnu::tls_model("initial-exec")]] = nullptr;
constinit thread_local const char* running_kernel [[gnu::tls_model("initial-exec")]] = nullptr;
// The error to report after the jump.
constinit thread_local musaError_t fault [[gnu::tls_model("initial-exec")]] = musaErrorIllegalAddress;

struct sigaction previous_segv;
struct sigaction previous_bus;

void say(const char* text) {
  // A fault handler cannot handle a closed stderr.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

void chain(int signal, siginfo_t* info, void* context, const struct sigaction& previous) {
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
    return;
  }
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
    return;
  }
  // Restores the default action; the faulting instruction is executed again and terminates the process.
  sigaction(signal, &previous, nullptr);
}

// Pages that writers are, or recently were, blocked from. A fault may be handled after the block has ended, so the
// last ranges are kept.
struct HeldRange {
  std::atomic<uintptr_t> base{0};
  std::atomic<size_t> bytes{0};
};
constexpr size_t kHeldRanges = 256;
HeldRange held_ranges[kHeldRanges];
std::atomic<size_t> next_held_range{0};
std::atomic<bool> holding_off{false};

// Whether to retry the access. The number of attempts is limited, in case the fault has another cause.
bool try_again(uintptr_t address) {
  thread_local uintptr_t last = 0;
  thread_local int attempts = 0;
  for (const HeldRange& range : held_ranges) {
    if (address - range.base.load() < range.bytes.load()) {
      attempts = address == last ? attempts + 1 : 0;
      last = address;
      while (holding_off.load()) {
        sched_yield();
      }
      return attempts < 100;
    }
  }
  return false;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (info->si_code == SEGV_ACCERR && signal == SIGSEGV && try_again(address)) {
    return;
  }
  const auto behind_stack = is_behind_stack.load();
  if (recovery != nullptr && behind_stack != nullptr && behind_stack(address)) {
    say("musa-emulator: kernel ");
    say(running_kernel);
    say(": stack overflow of a thread (128 KiB). Likely causes: unbounded recursion; large local arrays\n");
    fault = musaErrorLaunchFailure;
    pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(*recovery, 1);
  }
  char where[512];
  const auto describe = describe_device_address.load();
  const bool ours = describe != nullptr && describe(address, where, sizeof where);
  const bool null_page = address < 4096;
  if (recovery != nullptr && (ours || null_page)) {
    char text[768];
    std::snprintf(
        text, sizeof text, "musa-emulator: kernel %s made an illegal memory access at address %p%s%s\n",
        running_kernel != nullptr ? running_kernel : "(unnamed)", info->si_addr, ours ? ": " : "", ours ? where : "");
    say(text);
    // The jump leaves the handler without returning, so the signal mask is restored here; saving it at every launch
    // would cost a system call.
    pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(*recovery, 1);
  }
  if (ours) {
    char text[1024];
    std::snprintf(
        text, sizeof text,
        "musa-emulator: host code accessed device memory at address %p: %s.\n"
        "  Likely causes: a device pointer was dereferenced on the host; the memory was freed.\n"
        "  Fix: copy the data with musaMemcpy (in Python: tensor.cpu()), or allow host access with "
        "MUSA_EMULATOR_MEMORY=shared.\n",
        info->si_addr, where);
    say(text);
  }
  chain(signal, info, context, signal == SIGBUS ? previous_bus : previous_segv);
}

} // namespace

std::atomic<bool (*)(uintptr_t)> is_behind_stack{nullptr};
std::atomic<bool (*)(uintptr_t, char*, size_t)> describe_device_address{nullptr};

// Called for every launch. An initialized static costs one load; std::call_once first writes two thread-local
// pointers, with a call for each.
void install_fault_handler() {
  [[maybe_unused]] static const bool installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous_segv);
    sigaction(SIGBUS, &action, &previous_bus);
    return true;
  }();
}

WritersHeldOff::WritersHeldOff(uintptr_t base, size_t bytes) : base_(base), bytes_(bytes) {
  install_fault_handler();
  HeldRange& range = held_ranges[next_held_range.fetch_add(1) % kHeldRanges];
  range.bytes.store(0);
  range.base.store(base);
  range.bytes.store(bytes);
  holding_off.store(true);
  mprotect(reinterpret_cast<void*>(base), bytes, PROT_READ);
}

WritersHeldOff::~WritersHeldOff() {
  mprotect(reinterpret_cast<void*>(base_), bytes_, PROT_READ | PROT_WRITE);
  holding_off.store(false);
}

namespace {

template <class Part>
musaError_t guard(const char* kernel, Part&& part) {
  install_fault_handler();
  sigjmp_buf here;
  sigjmp_buf* const outer = recovery;
  const char* const outer_kernel = running_kernel;
  musaError_t status = musaSuccess;
  if (sigsetjmp(here, 0) != 0) {
    status = std::exchange(fault, musaErrorIllegalAddress);
  } else {
    recovery = &here;
    running_kernel = kernel;
    try {
      status = part();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "musa-emulator: kernel %s threw an exception: %s\n", kernel, error.what());
      status = musaErrorLaunchFailure;
    } catch (...) {
      std::fprintf(stderr, "musa-emulator: kernel %s threw an exception\n", kernel);
      status = musaErrorLaunchFailure;
    }
  }
  recovery = outer;
  running_kernel = outer_kernel;
  return status;
}

} // namespace

musaError_t run_guarded(Launch& launch) {
  return guard(launch.name(), [&launch] { return launch.run(); });
}

musaError_t run_guarded(const char* kernel, const std::function<musaError_t()>& part) { return guard(kernel, part); }

} // namespace musa_emulator
