// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "simt/workers.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace musa_emulator::simt {
namespace {

struct Job {
  const std::function<void()>* body;
  size_t wanted; // number of helpers that may still start
  size_t running = 0;
};

// Never destroyed: its threads wait in it at process exit.
class Pool {
 public:
  void run(size_t helpers, const std::function<void()>& body) {
    Job job{&body, helpers};
    {
      const std::lock_guard lock(mutex_);
      while (threads_ < helpers) {
        std::thread([this] { work(); }).detach();
        ++threads_;
      }
      jobs_.push_back(&job);
    }
    wake_.notify_all();
    body();
    std::unique_lock lock(mutex_);
    job.wanted = 0; // helpers that have not started do not run the body
    std::erase(jobs_, &job);
    done_.wait(lock, [&] { return job.running == 0; });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return !jobs_.empty(); });
      Job& job = *jobs_.front();
      ++job.running;
      if (--job.wanted == 0) {
        jobs_.pop_front();
      }
      lock.unlock();
      (*job.body)();
      lock.lock();
      if (--job.running == 0) {
        done_.notify_all();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<Job*> jobs_;
  size_t threads_ = 0;
};

} // namespace

void run_beside(size_t helpers, const std::function<void()>& body) {
  static Pool& pool = *new Pool;
  if (helpers == 0) {
    body();
    return;
  }
  pool.run(helpers, body);
}

} // namespace musa_emulator::simt
