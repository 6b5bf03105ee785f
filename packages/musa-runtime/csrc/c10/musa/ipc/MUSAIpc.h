// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/Storage.h>
#include <c10/musa/ipc/MUSAIpcCounters.h>
#include <c10/musa/MUSAStream.h>

#include <array>
#include <optional>

// Device memory shared with other processes.
//
// The sender keeps the memory until every message that named it has been received and released: while its storage lives
// anyway, and after that in limbo, which is searched at each new message, by collect(), and when the allocator needs
// memory. The receiver opens the segment (one musaMalloc) once, however many of its tensors arrive, and closes it with the
// last of them.
//
// Locking: one mutex guards the tables of this file. No call under it waits, runs queued work or takes another lock than
// the counters'. Deleters run on any thread, with or without the GIL. Lock order: GIL, then this.
namespace c10::musa::ipc {

// All that a receiver needs.
struct Message {
  CounterAddress counter;
  int device = 0; // the sender's index
  std::array<int, 3> pci{}; // domain, bus, device: the same device may have another index at the receiver
  musaIpcMemHandle_t segment{};
  size_t offset = 0; // of the storage in the segment
  size_t nbytes = 0;
  std::optional<musaIpcEventHandle_t> event; // nullopt if the sender's work had finished
};

// Makes a message for the storage's memory. The receiver sees the results of the work queued so far on the current stream
// of the storage's device; on a thread that has chosen no stream (a queue's feeder), of the work on all streams. Raises
// SharingError for memory that cannot be shared: received from another process, or not of the caching allocator.
C10_MUSA_API Message share(const c10::Storage& storage);

// Opens the memory of a message; the receiver's current stream waits for the sender's work. In the sender itself, returns
// its own storage. A second message with the same memory returns the same storage while that is alive.
C10_MUSA_API c10::Storage open(const Message& message);

// Frees memory in limbo that the receivers have released; returns the number of storages.
C10_MUSA_API size_t collect();

struct Usage {
  size_t sent = 0; // messages that are on their way
  size_t held = 0; // messages that a living process has received and not released
  size_t limbo = 0; // storages that only receivers keep alive
  size_t received = 0; // storages of other processes that this one holds
  std::vector<int> ended; // the senders among those which have ended
};
C10_MUSA_API Usage usage();

} // namespace c10::musa::ipc
