// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Many threads that use shared objects; most effective under the thread sanitizer.
#include <random>

#include "emulator_test.h"

class ConcurrencyTest : public EmulatorTest {};

TEST_F(ConcurrencyTest, ThreadsAllocateCopyAndFree) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      EXPECT_OK(musaSetDevice(t % 2));
      musaStream_t stream = nullptr;
      EXPECT_OK(musaStreamCreateWithFlags(&stream, musaStreamNonBlocking));
      for (int i = 0; i < 100; ++i) {
        const size_t size = 1000 + static_cast<size_t>(i) * 97;
        char* memory = nullptr;
        EXPECT_OK(musaMalloc(&memory, size));
        EXPECT_OK(musaMemsetAsync(memory, t + 1, size, stream));
        std::vector<char> back(size);
        EXPECT_OK(musaMemcpyAsync(back.data(), memory, size, musaMemcpyDeviceToHost, stream));
        EXPECT_OK(musaStreamSynchronize(stream));
        EXPECT_EQ(t + 1, back[size - 1]);
        EXPECT_OK(musaFree(memory));
      }
      EXPECT_OK(musaStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// In several rounds there are more threads than shards of a counter, so shards are shared, passed from thread
// to thread, and used by destructors after they were returned.
TEST_F(ConcurrencyTest, NoCallOfManyThreadsIsLeftOutOfTheCounts) {
  constexpr int kRounds = 3;
  constexpr int kThreads = 24;
  constexpr int kCalls = 500;
  struct CallAtTheEnd {
    bool made = true;
    ~CallAtTheEnd() {
      int device = -1;
      EXPECT_OK(musaGetDevice(&device));
    }
  };
  const auto calls = musaEmulatorApiCallCount("musaGetDevice");
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([] {
        thread_local CallAtTheEnd
            last; // constructed before the emulator's thread-local objects, so destroyed after them
        EXPECT_TRUE(last.made);
        for (int i = 0; i < kCalls; ++i) {
          int device = -1;
          EXPECT_OK(musaGetDevice(&device));
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  EXPECT_EQ(calls + kRounds * kThreads * (kCalls + 1), musaEmulatorApiCallCount("musaGetDevice"));
}

TEST_F(ConcurrencyTest, ThreadsShareOneStream) {
  const Stream stream;
  int unguarded = 0; // not atomic: the stream orders the accesses
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_OK(musaLaunchHostFunc(stream, [](void* p) { ++*static_cast<int*>(p); }, &unguarded));
        if (i % 50 == 0) {
          EXPECT_OK(musaStreamSynchronize(stream));
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(800, unguarded);
}

TEST_F(ConcurrencyTest, EventsOrderAPipelineOfStreams) {
  constexpr int kStages = 4;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Event>> events;
  for (int s = 0; s < kStages; ++s) {
    streams.push_back(std::make_unique<Stream>());
    events.push_back(std::make_unique<Event>(musaEventDisableTiming));
  }
  int value = 0; // passed from stream to stream
  for (int round = 0; round < 50; ++round) {
    for (int s = 0; s < kStages; ++s) {
      const int previous = (s + kStages - 1) % kStages;
      EXPECT_OK(musaStreamWaitEvent(*streams[static_cast<size_t>(s)], *events[static_cast<size_t>(previous)], 0));
      EXPECT_OK(musaLaunchHostFunc(*streams[static_cast<size_t>(s)], [](void* p) { ++*static_cast<int*>(p); }, &value));
      EXPECT_OK(musaEventRecord(*events[static_cast<size_t>(s)], *streams[static_cast<size_t>(s)]));
    }
  }
  EXPECT_OK(musaEventSynchronize(*events.back()));
  EXPECT_EQ(50 * kStages, value);
}

TEST_F(ConcurrencyTest, DefaultAndBlockingStreamsFromManyThreadsNeverOverlap) {
  static std::atomic<int> inside;
  static std::atomic<int> overlaps;
  inside = 0;
  overlaps = 0;
  const Stream blocking(musaStreamDefault);
  const auto exclusive = [](void*) {
    overlaps += inside.fetch_add(1) != 0;
    std::this_thread::yield();
    inside.fetch_sub(1);
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_OK(musaLaunchHostFunc(t % 2 == 0 ? blocking.handle : nullptr, exclusive, nullptr));
      }
      EXPECT_OK(musaStreamSynchronize(t % 2 == 0 ? blocking.handle : nullptr));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_EQ(0, overlaps.load());
}

TEST_F(ConcurrencyTest, StreamsAndEventsComeAndGo) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::minstd_rand random(static_cast<unsigned>(t) + 1);
      for (int i = 0; i < 100; ++i) {
        musaStream_t stream = nullptr;
        musaEvent_t event = nullptr;
        EXPECT_OK(musaStreamCreateWithFlags(&stream, random() % 2));
        EXPECT_OK(musaEventCreateWithFlags(&event, musaEventDisableTiming));
        EXPECT_OK(musaLaunchHostFunc(stream, [](void*) {}, nullptr));
        EXPECT_OK(musaEventRecord(event, stream));
        if (random() % 2 == 0) {
          EXPECT_OK(musaEventSynchronize(event));
        }
        EXPECT_OK(musaEventDestroy(event));
        EXPECT_OK(musaStreamDestroy(stream));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_OK(musaDeviceSynchronize());
}

// A model check: random work on streams, events and devices. Each operation records the operations that must
// run before it, and checks that they have.
TEST_F(ConcurrencyTest, RandomProgramsRespectEveryDependency) {
  constexpr int kStreams = 5;
  constexpr int kEvents = 4;
  constexpr int kOperations = 400;
  struct Operation {
    std::atomic<bool> done{false};
    std::vector<Operation*> before;
    std::atomic<int>* violations = nullptr;
  };
  for (unsigned seed = 1; seed <= 4; ++seed) {
    std::minstd_rand random(seed);
    std::atomic<int> violations{0};
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::unique_ptr<Event>> events;
    for (int i = 0; i < kStreams; ++i) {
      streams.push_back(std::make_unique<Stream>(i < 2 ? musaStreamDefault : musaStreamNonBlocking));
    }
    for (int i = 0; i < kEvents; ++i) {
      events.push_back(std::make_unique<Event>(musaEventDisableTiming));
    }
    // Model: the operations before the next one of each stream. The last index is the default stream.
    std::vector<std::vector<Operation*>> follows(kStreams + 1);
    std::vector<std::vector<Operation*>> recorded(kEvents);
    std::vector<std::unique_ptr<Operation>> operations;
    const auto handle = [&](int s) { return s == kStreams ? nullptr : streams[static_cast<size_t>(s)]->handle; };
    const auto implicit = [&](int s) {
      std::vector<Operation*> all = follows[static_cast<size_t>(s)];
      if (s == kStreams) {
        for (int b = 0; b < 2; ++b) {
          all.insert(all.end(), follows[static_cast<size_t>(b)].begin(), follows[static_cast<size_t>(b)].end());
        }
      } else if (s < 2) {
        all.insert(all.end(), follows[kStreams].begin(), follows[kStreams].end());
      }
      return all;
    };
    for (int i = 0; i < kOperations; ++i) {
      const int s = static_cast<int>(random() % (kStreams + 1));
      const auto e = static_cast<size_t>(random() % kEvents);
      switch (random() % 8) {
        case 0:
          EXPECT_OK(musaEventRecord(*events[e], handle(s)));
          recorded[e] = implicit(s);
          follows[static_cast<size_t>(s)] = recorded[e];
          break;
        case 1: {
          EXPECT_OK(musaStreamWaitEvent(handle(s), *events[e], 0));
          auto& list = follows[static_cast<size_t>(s)];
          list.insert(list.end(), recorded[e].begin(), recorded[e].end());
          break;
        }
        case 2:
          if (random() % 4 == 0) {
            EXPECT_OK(musaStreamSynchronize(handle(s)));
            for (Operation* operation : follows[static_cast<size_t>(s)]) {
              violations += !operation->done;
            }
          } else {
            musaStreamQuery(handle(s));
          }
          break;
        default: {
          operations.push_back(std::make_unique<Operation>());
          Operation& operation = *operations.back();
          operation.before = implicit(s);
          operation.violations = &violations;
          follows[static_cast<size_t>(s)] = {&operation};
          EXPECT_OK(musaLaunchHostFunc(
              handle(s),
              [](void* data) {
                auto& self = *static_cast<Operation*>(data);
                for (Operation* previous : self.before) {
                  *self.violations += !previous->done;
                }
                self.done = true;
              },
              &operation));
        }
      }
    }
    EXPECT_OK(musaDeviceSynchronize());
    for (const auto& operation : operations) {
      violations += !operation->done;
    }
    EXPECT_EQ(0, violations.load()) << "seed " << seed;
  }
  musaGetLastError();
}
