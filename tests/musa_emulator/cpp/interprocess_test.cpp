// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Memory and events shared with a second process, which runs this program too.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "emulator_test.h"

namespace {

struct Message {
  musaIpcMemHandle_t memory;
  musaIpcEventHandle_t event;
};

bool write_all(int fd, const void* data, size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes != 0) {
    const ssize_t written = write(fd, next, bytes);
    if (written <= 0) {
      return false;
    }
    next += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

bool read_all(int fd, void* data, size_t bytes) {
  char* next = static_cast<char*>(data);
  while (bytes != 0) {
    const ssize_t got = read(fd, next, bytes);
    if (got <= 0) {
      return false;
    }
    next += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

// A process that runs this program with a task; its stdin and stdout are pipes.
class Child {
 public:
  explicit Child(const char* task) {
    int in[2];
    int out[2];
    EXPECT_EQ(0, pipe(in));
    EXPECT_EQ(0, pipe(out));
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      close(in[1]);
      close(out[0]);
      execl("/proc/self/exe", "emulator_tests", "--interprocess-child", task, nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }
  ~Child() {
    close(to_);
    close(from_);
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  void kill_now() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  int exit_status() {
    int status = -1;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void send(const Message& message) { EXPECT_TRUE(write_all(to_, &message, sizeof message)); }
  Message receive() {
    Message message = {};
    EXPECT_TRUE(read_all(from_, &message, sizeof message)) << "the child ended early";
    return message;
  }
  void await() {
    char c = 0;
    EXPECT_TRUE(read_all(from_, &c, 1));
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

#define CHILD_CHECK(expression) \
  if (const musaError_t status_ = (expression); status_ != musaSuccess) { \
    std::fprintf(stderr, "child: %s: %s\n", #expression, musaGetErrorName(status_)); \
    return 1; \
  }

// Reads the parent's memory after the parent's event, and writes an answer into it.
int child_reads() {
  Message message;
  if (!read_all(STDIN_FILENO, &message, sizeof message)) {
    return 2;
  }
  char* memory = nullptr;
  musaEvent_t event = nullptr;
  musaStream_t stream = nullptr;
  CHILD_CHECK(musaStreamCreateWithFlags(&stream, musaStreamNonBlocking));
  CHILD_CHECK(musaIpcOpenMemHandle(reinterpret_cast<void**>(&memory), message.memory, 1));
  CHILD_CHECK(musaIpcOpenEventHandle(&event, message.event));
  CHILD_CHECK(musaStreamWaitEvent(stream, event, 0));
  char host[64] = {};
  char* pinned = nullptr;
  CHILD_CHECK(musaMallocHost(&pinned, 64));
  CHILD_CHECK(musaMemcpyAsync(pinned, memory, 64, musaMemcpyDeviceToHost, stream));
  if (!write_all(STDOUT_FILENO, "r", 1)) { // the wait has been enqueued
    return 2;
  }
  CHILD_CHECK(musaStreamSynchronize(stream));
  std::memcpy(host, pinned, 64);
  for (const char c : host) {
    if (c != 42) {
      std::fprintf(stderr, "child: read %d before the event\n", c);
      return 3;
    }
  }
  CHILD_CHECK(musaMemset(memory, 43, 64));
  CHILD_CHECK(musaDeviceSynchronize());
  CHILD_CHECK(musaFreeHost(pinned));
  CHILD_CHECK(musaEventDestroy(event));
  CHILD_CHECK(musaStreamDestroy(stream));
  CHILD_CHECK(musaIpcCloseMemHandle(memory));
  return 0;
}

// Exports memory and an event that never completes, and is killed.
int child_exports() {
  Message message = {};
  char* memory = nullptr;
  musaEvent_t event = nullptr;
  CHILD_CHECK(musaMalloc(&memory, 4096));
  CHILD_CHECK(musaMemset(memory, 7, 4096));
  CHILD_CHECK(musaEventCreateWithFlags(&event, musaEventInterprocess | musaEventDisableTiming));
  CHILD_CHECK(musaIpcGetMemHandle(&message.memory, memory));
  CHILD_CHECK(musaIpcGetEventHandle(&message.event, event));
  musaStream_t stream = nullptr;
  CHILD_CHECK(musaStreamCreateWithFlags(&stream, musaStreamNonBlocking));
  // An operation that never ends, then a record. In inline mode the submitting thread runs it, hence a thread.
  std::thread([stream] { musaLaunchHostFunc(stream, [](void*) { pause(); }, nullptr); }).detach();
  while (musaEmulatorPendingOperations() == 0) {
    std::this_thread::yield();
  }
  CHILD_CHECK(musaEventRecord(event, stream));
  if (!write_all(STDOUT_FILENO, &message, sizeof message)) {
    return 2;
  }
  pause();
  return 0;
}

} // namespace

int run_interprocess_child(int argc, char** argv) {
  const std::string task = argc > 2 ? argv[2] : "";
  return task == "reads" ? child_reads() : task == "exports" ? child_exports() : 2;
}

class InterprocessTest : public EmulatorTest {};

TEST_F(InterprocessTest, AChildReadsAfterTheEventAndWritesBack) {
  Child child("reads");
  const Stream stream;
  const DeviceArray<char> memory(64);
  EXPECT_OK(musaMemset(memory, 1, 64));
  const Event event(musaEventInterprocess | musaEventDisableTiming);
  Message message = {};
  ASSERT_OK(musaIpcGetMemHandle(&message.memory, memory));
  ASSERT_OK(musaIpcGetEventHandle(&message.event, event));
  Blocker blocker(stream);
  EXPECT_OK(musaMemsetAsync(memory, 42, 64, stream));
  EXPECT_OK(musaEventRecord(event, stream));
  child.send(message);
  child.await();
  blocker.release();
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(0, child.exit_status());
  EXPECT_EQ(43, read_back(memory.data, 64)[63]) << "the pages are shared";
}

TEST_F(InterprocessTest, AKilledExporterLeavesMappedMemoryUsableAndHoldsNobodyUp) {
  Child child("exports");
  const Message message = child.receive();
  char* memory = nullptr;
  ASSERT_OK(musaIpcOpenMemHandle(reinterpret_cast<void**>(&memory), message.memory, 1));
  musaEvent_t event = nullptr;
  ASSERT_OK(musaIpcOpenEventHandle(&event, message.event));
  EXPECT_STATUS(musaErrorNotReady, musaEventQuery(event));
  const Stream stream;
  EXPECT_OK(musaStreamWaitEvent(stream, event, 0));
  std::atomic<bool> ran{false};
  EXPECT_OK(musaLaunchHostFunc(stream, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }, &ran));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(ran.load());
  child.kill_now();
  EXPECT_OK(musaStreamSynchronize(stream)) << "a dead process's work cannot be waited for";
  EXPECT_TRUE(ran.load());
  EXPECT_EQ(7, read_back(memory, 4096)[4095]);
  EXPECT_OK(musaIpcCloseMemHandle(memory));
  EXPECT_OK(musaEventDestroy(event));
  EXPECT_STATUS(
      musaErrorInvalidResourceHandle, musaIpcOpenMemHandle(reinterpret_cast<void**>(&memory), message.memory, 1))
      << "the segment went with its owner";
}

TEST_F(InterprocessTest, HandlesAreCheckedBeforeUse) {
  const DeviceArray<char> memory(64);
  void* opened = nullptr;
  musaIpcMemHandle_t handle = {};
  EXPECT_STATUS(musaErrorInvalidValue, musaIpcOpenMemHandle(&opened, handle, 1)) << "not a handle";
  char host[8];
  EXPECT_STATUS(musaErrorInvalidValue, musaIpcGetMemHandle(&handle, host));
  ASSERT_OK(musaIpcGetMemHandle(&handle, memory));
  EXPECT_STATUS(musaErrorDeviceUninitialized, musaIpcOpenMemHandle(&opened, handle, 1)) << "same process";
  EXPECT_STATUS(musaErrorInvalidValue, musaIpcOpenMemHandle(&opened, handle, 0)) << "the flag is required";
  EXPECT_STATUS(musaErrorInvalidValue, musaIpcCloseMemHandle(memory)) << "not an imported pointer";
  const Event ordinary;
  musaIpcEventHandle_t event_handle = {};
  EXPECT_STATUS(musaErrorInvalidResourceHandle, musaIpcGetEventHandle(&event_handle, ordinary));
}

TEST_F(InterprocessTest, ExportingKeepsContentsAndAddress) {
  const DeviceArray<int> memory(1 << 20);
  write_to(memory.data, std::vector<int>(1 << 20, 77));
  musaIpcMemHandle_t handle = {};
  EXPECT_OK(musaIpcGetMemHandle(&handle, memory + 5));
  EXPECT_EQ(77, read_back(memory.data, 1 << 20)[(1 << 20) - 1]);
  musaIpcMemHandle_t again = {};
  EXPECT_OK(musaIpcGetMemHandle(&again, memory));
  EXPECT_EQ(0, std::memcmp(&handle, &again, sizeof handle));
}

TEST_F(InterprocessTest, ARecordReachesTheOtherProcessThoughNobodyHereWaits) {
  Child child("reads");
  const Stream stream;
  const DeviceArray<char> memory(64);
  const Event event(musaEventInterprocess | musaEventDisableTiming);
  Message message = {};
  ASSERT_OK(musaIpcGetMemHandle(&message.memory, memory));
  ASSERT_OK(musaIpcGetEventHandle(&message.event, event));
  EXPECT_OK(musaMemsetAsync(memory, 42, 64, stream));
  EXPECT_OK(musaEventRecord(event, stream));
  child.send(message);
  child.await();
  EXPECT_EQ(0, child.exit_status());
}

TEST_F(InterprocessTest, WritesOfTheHostDuringTheFirstExportAreKept) {
  constexpr size_t kWords = size_t{4} << 20;
  for (int round = 0; round < 5; ++round) {
    const DeviceArray<int> memory(kWords);
    int* const words = memory.data;
    std::memset(words, 0, kWords * sizeof(int));
    std::atomic<bool> stop{false};
    std::atomic<int> laps{0};
    std::thread writer([&] {
      while (!stop.load()) {
        for (size_t i = 0; i < kWords; i += 512) {
          ++words[i];
        }
        laps.fetch_add(1);
      }
    });
    while (laps.load() == 0) {
      std::this_thread::yield();
    }
    musaIpcMemHandle_t handle = {};
    EXPECT_OK(musaIpcGetMemHandle(&handle, words));
    stop.store(true);
    writer.join();
    for (size_t i = 0; i < kWords; i += 512) {
      ASSERT_EQ(laps.load(), words[i]) << "word " << i << " lost a write in round " << round;
    }
  }
}
