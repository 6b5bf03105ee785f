// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <c10/musa/ipc/MUSAIpc.h>

#include <c10/core/impl/COW.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAEvent.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSAGraphsC10Utils.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/allocator/MUSAAllocatorHooks.h>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>

namespace c10::musa::ipc {
namespace {

// An event may cost the SDK a file descriptor; beyond this many the sender synchronizes instead.
constexpr int kMostEvents = 64;
std::atomic<int> events_in_flight{0};

struct SentEvent {
  MUSAEvent event{musaEventDisableTiming | musaEventInterprocess};
  SentEvent() { events_in_flight.fetch_add(1); }
  ~SentEvent() { events_in_flight.fetch_sub(1); }
};

// The handle of a segment, requested once while any storage in it is shared: the segment cannot be freed in that time.
struct ExportedSegment {
  char* base = nullptr;
  musaIpcMemHandle_t handle{};
};

struct Outgoing {
  uint32_t slot;
  std::unique_ptr<SentEvent> event;
};

// The context of the DataPtr of a storage that was shared. The mutex guards it.
struct Sent {
  c10::DataPtr original;
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  std::shared_ptr<ExportedSegment> segment;
  size_t nbytes;
  std::vector<Outgoing> outgoing;
  bool in_limbo = false;
};

struct OpenedSegment {
  DeviceIndex device;
  char* base;
  ~OpenedSegment() {
    // The SDK may have shut down: a failure cannot be reported.
    const MUSAStreamCaptureModeGuard relaxed;
    C10_MUSA_IGNORE_ERROR(musaIpcCloseMemHandle(base));
  }
};

// The context of the DataPtr of a storage that was received. The mutex guards `streams`.
struct Received {
  std::shared_ptr<OpenedSegment> segment;
  std::shared_ptr<PeerCounters> counters;
  uint32_t slot;
  std::string key;
  std::vector<MUSAStream> streams; // by record_stream
};

struct Tables {
  std::mutex mutex;
  std::unordered_set<Sent*> sent;
  std::unordered_map<uint32_t, Sent*> by_slot; // for messages that come back to their sender
  std::unordered_map<void*, std::weak_ptr<ExportedSegment>> exported;
  std::unordered_map<std::string, std::weak_ptr<OpenedSegment>> opened; // by device and handle
  std::unordered_set<Received*> received;
  std::unordered_map<std::string, c10::weak_intrusive_ptr<c10::StorageImpl>> storages; // by device, handle and place
};

Tables& tables() {
  static auto& instance = *new Tables; // leaked: memory is released until the very end of the process
  return instance;
}

// Takes out the messages that the receivers have released. The caller destroys them without the mutex.
void prune(Sent& sent, std::vector<Outgoing>& finished) {
  SentCounters& counters = SentCounters::get();
  std::erase_if(sent.outgoing, [&](Outgoing& message) {
    if (counters.in_use(message.slot)) {
      return false;
    }
    tables().by_slot.erase(message.slot);
    counters.free_slot(message.slot);
    finished.push_back(std::move(message));
    return true;
  });
}

void release_sent(void* context) {
  auto* sent = static_cast<Sent*>(context);
  if (!of_this_process()) {
    return; // a forked child's copy: both the memory and the counters are the parent's
  }
  std::vector<Outgoing> finished;
  Tables& all = tables();
  {
    const std::lock_guard lock(all.mutex);
    prune(*sent, finished);
    if (!sent->outgoing.empty()) {
      sent->in_limbo = true;
      return;
    }
    all.sent.erase(sent);
  }
  delete sent;
}

// Work of this process on the memory must finish before the sender may reuse it.
void finish_work(const Received& received) {
  const DeviceIndex device = received.segment->device;
  int before = 0;
  C10_MUSA_IGNORE_ERROR(musaGetDevice(&before));
  if (before != device) {
    C10_MUSA_IGNORE_ERROR(musaSetDevice(device));
  }
  const MUSAStreamCaptureModeGuard relaxed; // a deleter, which may run during a capture
  C10_MUSA_IGNORE_ERROR(musaStreamSynchronize(getCurrentMUSAStream(device).stream()));
  for (const MUSAStream& stream : received.streams) {
    C10_MUSA_IGNORE_ERROR(musaStreamSynchronize(stream.stream()));
  }
  if (before != device) {
    restore_device(static_cast<DeviceIndex>(before));
  }
}

std::string ended_early(const PeerCounters& sender) {
  return c10::str(
      "Process ", sender.process(),
      " ended while this process still held musa tensors that it had shared. Their contents "
      "are undefined from then on.\nFix: keep the sender alive until the receivers have released them (an Event, or join() "
      "after), or keep a copy: tensor.clone().");
}

// Waits on a separate thread for the sender's end, and reports it if memory of the sender is held then. Otherwise a
// receiver that continues to compute would notice only when it releases the memory or calls collect().
void watch(const std::shared_ptr<PeerCounters>& sender) {
  if (!sender->claim_watch()) {
    return;
  }
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, sender->process(), 0));
  if (process < 0) {
    return; // a kernel before 5.3, or the sender has just ended: reported when the memory is released
  }
  std::thread([process, watched = std::weak_ptr<PeerCounters>(sender)] {
    pollfd end{process, POLLIN, 0};
    while (poll(&end, 1, -1) < 0 && errno == EINTR) {}
    close(process);
    const auto ended = watched.lock();
    if (ended == nullptr) {
      return;
    }
    Tables& all = tables();
    std::unique_lock lock(all.mutex);
    const bool held = std::any_of(all.received.begin(), all.received.end(), [&](const Received* received) {
      return received->counters == ended;
    });
    lock.unlock();
    if (held && ended->claim_report()) {
      TORCH_WARN(ended_early(*ended));
    }
  }).detach();
}

void release_received(void* context) {
  if (!of_this_process()) {
    return;
  }
  const std::unique_ptr<Received> received(static_cast<Received*>(context));
  Tables& all = tables();
  {
    const std::lock_guard lock(all.mutex);
    all.received.erase(received.get());
    if (const auto known = all.storages.find(received->key); known != all.storages.end() && known->second.expired()) {
      all.storages.erase(known);
    }
  }
  try {
    finish_work(*received);
  } catch (const std::exception& error) {
    TORCH_WARN("Received musa memory was released while its streams could not be waited for: ", error.what());
  }
  received->segment.reset();
  received->counters->release(received->slot);
  if (!received->counters->sender_alive() && received->counters->claim_report()) {
    TORCH_WARN(ended_early(*received->counters));
  }
}

[[noreturn]] void refuse(const std::string& text) { throw SharingError(SharingError::Kind::Refused, text); }

// The segment of a storage that was shared before; null for memory of the caching allocator.
std::shared_ptr<ExportedSegment> shared_before(const c10::StorageImpl& storage) {
  bool ours = false;
  {
    const std::lock_guard lock(tables().mutex);
    const c10::DataPtr& data = storage.data_ptr();
    if (data.get_deleter() == &release_sent) {
      return static_cast<Sent*>(data.get_context())->segment;
    }
    if (data.get_deleter() == &release_received) {
      refuse(
          c10::str(
              "a musa tensor that was received from process ",
              static_cast<Received*>(data.get_context())->counters->process(),
              " cannot be sent on: only the process that allocated the memory may share it.\n"
              "Fix: send a copy: tensor.clone(); or let the first process send it to every receiver."));
    }
    ours = data.get_deleter() == MUSACachingAllocator::deleter();
  }
  if (!ours || !MUSACachingAllocator::owns(storage.data())) {
    refuse(
        "this musa tensor's memory did not come from the musa caching allocator, so it cannot be shared with another "
        "process.\nLikely causes: a pluggable allocator; memory of another library (DLPack, from_blob).\n"
        "Fix: send a copy: tensor.clone().");
  }
  return nullptr;
}

std::shared_ptr<ExportedSegment> export_segment(void* data) {
  size_t size = 0;
  void* const base = MUSACachingAllocator::getBaseAllocation(data, &size);
  Tables& all = tables();
  {
    const std::lock_guard lock(all.mutex);
    if (auto known = all.exported[base].lock()) {
      return known;
    }
  }
  // Not under the mutex: the SDK may wait for the device. Two threads that do this at once get equal handles.
  auto segment = std::make_shared<ExportedSegment>();
  segment->base = static_cast<char*>(base);
  const musaError_t error = musaIpcGetMemHandle(&segment->handle, base);
  if (error == musaErrorInvalidValue || error == musaErrorNotSupported) {
    C10_MUSA_CLEAR_ERROR();
    refuse(
        c10::str(
            "the SDK cannot share this musa tensor's memory with another process: musaIpcGetMemHandle: ",
            musaGetErrorString(error),
            ".\nLikely causes: expandable segments (memory that is mapped piece by piece has no handle); a pluggable "
            "allocator that takes memory from elsewhere than musaMalloc.\n"
            "Fix: set PYTORCH_ALLOC_CONF=expandable_segments:False, or send a copy on the CPU: tensor.cpu()."));
  }
  if (error == musaErrorMemoryAllocation) {
    C10_MUSA_CLEAR_ERROR();
    refuse(
        c10::str(
            "the SDK could not make this musa tensor's memory available to other processes: musaIpcGetMemHandle: ",
            musaGetErrorString(error),
            ".\nLikely causes: a limit of this process on the size of files or on their number; the host or the device has no "
            "memory left.\n"
            "Fix: raise the limits with: ulimit -f unlimited -n 65536; or send a copy on the CPU: tensor.cpu()."));
  }
  if (error != musaSuccess) {
    throw_musa_error(error, "musaIpcGetMemHandle(&segment->handle, base)", __func__, __FILE__, __LINE__);
  }
  const std::lock_guard lock(all.mutex);
  all.exported[base] = segment;
  return segment;
}

// Returns the event that the receiver must wait for; nullptr if the work has finished.
std::unique_ptr<SentEvent> mark_work(DeviceIndex device) {
  const MUSAStream stream = getCurrentMUSAStream(device);
  if (stream.id() == 0 && side_streams_exist(device)) {
    // A queue pickles on a thread of its own, so the stream that filled the tensor is unknown.
    device_synchronize();
    return nullptr;
  }
  if (stream.query()) {
    return nullptr;
  }
  if (events_in_flight.load() >= kMostEvents) {
    C10_MUSA_CHECK(musaStreamSynchronize(stream.stream())); // an internal wait, which sync debug mode does not report
    return nullptr;
  }
  auto mark = std::make_unique<SentEvent>();
  mark->event.record(stream);
  return mark;
}

// Returns a slot that was taken for a message that could not be made.
class TakenSlot {
 public:
  TakenSlot() : address_(SentCounters::get().take()) {}
  ~TakenSlot() {
    if (!kept_) {
      SentCounters::get().free_slot(address_.slot);
    }
  }
  TakenSlot(const TakenSlot&) = delete;
  TakenSlot& operator=(const TakenSlot&) = delete;
  const CounterAddress& address() const { return address_; }
  void keep() { kept_ = true; }

 private:
  CounterAddress address_;
  bool kept_ = false;
};

bool reclaim() { return collect() != 0; }

// For memory that was shared or received.
void record_stream(const c10::DataPtr& data, MUSAStream stream) {
  if (data.get_deleter() == &release_sent) {
    MUSACachingAllocator::recordStream(static_cast<Sent*>(data.get_context())->original, stream);
  } else if (data.get_deleter() == &release_received) {
    const std::lock_guard lock(tables().mutex);
    auto& streams = static_cast<Received*>(data.get_context())->streams;
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
  }
}

void register_with_allocator() {
  MUSACachingAllocator::set_reclaimer(&reclaim);
  MUSACachingAllocator::set_stream_recorder_of_foreign(&record_stream);
}

DeviceIndex find_device(const Message& message) {
  const auto matches = [&](DeviceIndex device) {
    const musaDeviceProp& p = device_properties(device);
    return message.pci == std::array<int, 3>{p.pciDomainID, p.pciBusID, p.pciDeviceID};
  };
  const DeviceIndex count = device_count();
  if (message.device >= 0 && message.device < count && matches(static_cast<DeviceIndex>(message.device))) {
    return static_cast<DeviceIndex>(message.device);
  }
  for (DeviceIndex device = 0; device < count; ++device) {
    if (matches(device)) {
      return device;
    }
  }
  refuse(
      c10::str(
          "a musa tensor was received from process ", message.counter.process,
          " that is on its device musa:", message.device,
          ", which this process cannot see.\nLikely cause: MUSA_VISIBLE_DEVICES differs between the two processes.\n"
          "Fix: make the device visible here, or send a copy on the CPU: tensor.cpu()."));
}

c10::Storage open_own(const Message& message) {
  Tables& all = tables();
  const uint32_t slot = message.counter.slot;
  while (true) {
    std::vector<Outgoing> finished;
    std::unique_lock lock(all.mutex);
    const auto known = all.by_slot.find(slot);
    if (known == all.by_slot.end()) {
      SentCounters::get().receive_own(slot); // raises: it was received before, or never sent
      TORCH_INTERNAL_ASSERT(false, "Slot ", slot, " is marked as sent, and there is no message for it.");
    }
    Sent* sent = known->second;
    auto storage = sent->storage.lock();
    if (!storage && !sent->in_limbo) {
      // Another thread is releasing the storage and has not reached its deleter yet.
      lock.unlock();
      std::this_thread::yield();
      continue;
    }
    SentCounters::get().receive_own(slot);
    if (!storage) {
      storage = c10::make_intrusive<c10::StorageImpl>(
          c10::StorageImpl::use_byte_size_t(), sent->nbytes,
          c10::DataPtr(sent->original.get(), sent, &release_sent, sent->original.device()), MUSACachingAllocator::get(),
          /*resizable=*/true);
      sent->storage = c10::weak_intrusive_ptr<c10::StorageImpl>(storage);
      sent->in_limbo = false;
    }
    prune(*sent, finished);
    lock.unlock();
    return c10::Storage(std::move(storage));
  }
}

std::string key_of(DeviceIndex device, const musaIpcMemHandle_t& handle) {
  std::string key(reinterpret_cast<const char*>(&handle), sizeof handle);
  key.push_back(static_cast<char>(device));
  return key;
}

std::shared_ptr<OpenedSegment> open_segment(DeviceIndex device, const Message& message) {
  Tables& all = tables();
  const std::string key = key_of(device, message.segment);
  {
    const std::lock_guard lock(all.mutex);
    if (const auto known = all.opened.find(key); known != all.opened.end()) {
      if (auto segment = known->second.lock()) {
        return segment;
      }
    }
  }
  void* base = nullptr;
  const MUSAStreamCaptureModeGuard relaxed;
  C10_MUSA_CHECK(musaIpcOpenMemHandle(&base, message.segment, musaIpcMemLazyEnablePeerAccess));
  auto fresh = std::make_shared<OpenedSegment>(device, static_cast<char*>(base));
  const std::lock_guard lock(all.mutex);
  auto& place = all.opened[key];
  if (auto segment = place.lock()) {
    return segment; // another thread opened it first; ours is closed
  }
  place = fresh;
  std::erase_if(all.opened, [](const auto& entry) { return entry.second.expired(); });
  return fresh;
}

// A claimed message; released again unless a storage takes it over.
class Claim {
 public:
  Claim(std::shared_ptr<PeerCounters> counters, uint32_t slot) : counters_(std::move(counters)), slot_(slot) {
    counters_->receive(slot_);
  }
  ~Claim() {
    if (!kept_) {
      counters_->release(slot_);
    }
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  void keep() { kept_ = true; }

 private:
  std::shared_ptr<PeerCounters> counters_;
  uint32_t slot_;
  bool kept_ = false;
};

c10::Storage receive(const Message& message, const std::shared_ptr<PeerCounters>& counters) {
  // First: a message that cannot be opened is lost, and its sender may reuse the memory.
  Claim claim(counters, message.counter.slot);
  const DeviceIndex device = find_device(message);
  const MUSAGuard guard(device);
  auto segment = open_segment(device, message);
  if (message.event.has_value()) {
    MUSAEvent event(device, &*message.event);
    event.block(getCurrentMUSAStream(device));
  }
  watch(counters);
  Tables& all = tables();
  const std::string key = c10::str(key_of(device, message.segment), '/', message.offset, '/', message.nbytes);
  auto received = std::make_unique<Received>(Received{segment, counters, message.counter.slot, key, {}});
  const std::lock_guard lock(all.mutex);
  if (const auto known = all.storages.find(key); known != all.storages.end()) {
    if (auto storage = known->second.lock()) {
      return c10::Storage(std::move(storage)); // it has its own claim
    }
  }
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), message.nbytes,
      c10::DataPtr(
          segment->base + message.offset, received.get(), &release_received, Device(DeviceType::PrivateUse1, device)),
      MUSACachingAllocator::get(), /*resizable=*/false);
  all.received.insert(received.release());
  claim.keep();
  all.storages.insert_or_assign(key, c10::weak_intrusive_ptr<c10::StorageImpl>(storage));
  return c10::Storage(std::move(storage));
}

} // namespace

Message share(const c10::Storage& storage) {
  claim_process();
  register_with_allocator();
  collect();
  const Device device = storage.device();
  const MUSAGuard guard(device);
  if (c10::impl::cow::is_cow_data_ptr(storage.data_ptr())) {
    (void)storage.mutable_data(); // a lazy clone gets its own memory before it is shared
  }
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  Tables& all = tables();
  std::shared_ptr<ExportedSegment> segment = shared_before(*impl);
  char* const address = static_cast<char*>(impl->_mutable_data_ptr_no_checks().get());
  if (segment == nullptr) {
    segment = export_segment(address);
  }
  TakenSlot slot;
  Message message;
  message.counter = slot.address();
  message.device = device.index();
  const musaDeviceProp& properties = device_properties(device.index());
  message.pci = {properties.pciDomainID, properties.pciBusID, properties.pciDeviceID};
  message.segment = segment->handle;
  message.offset = static_cast<size_t>(address - segment->base);
  message.nbytes = storage.nbytes();
  std::unique_ptr<SentEvent> event = mark_work(device.index());
  if (event != nullptr) {
    event->event.ipc_handle(&message.event.emplace());
  }

  const std::lock_guard lock(all.mutex);
  Sent* sent = nullptr;
  if (impl->data_ptr().get_deleter() == &release_sent) { // shared by now, perhaps by another thread
    sent = static_cast<Sent*>(impl->data_ptr().get_context());
  } else {
    sent = new Sent{
        {}, c10::weak_intrusive_ptr<c10::StorageImpl>(storage.getWeakStorageImpl()), segment, message.nbytes, {}};
    sent->original = impl->set_data_ptr(c10::DataPtr(address, sent, &release_sent, device));
    all.sent.insert(sent);
  }
  sent->outgoing.push_back({message.counter.slot, std::move(event)});
  all.by_slot[message.counter.slot] = sent;
  slot.keep();
  return message;
}

c10::Storage open(const Message& message) {
  claim_process();
  register_with_allocator();
  if (message.counter.process == getpid()) {
    return open_own(message);
  }
  const auto counters = PeerCounters::open(message.counter);
  try {
    return receive(message, counters);
  } catch (const c10::Error&) {
    if (counters->sender_alive()) {
      throw;
    }
    C10_MUSA_CLEAR_ERROR();
    throw SharingError(
        SharingError::Kind::SenderGone,
        c10::str(
            "process ", message.counter.process,
            ", which shared a musa tensor with this one, ended while it was being "
            "received.\nFix: keep the sending process alive until the receiver has what it needs."));
  }
}

size_t collect() {
  if (!of_this_process()) {
    return 0;
  }
  std::vector<Outgoing> finished;
  std::vector<std::unique_ptr<Sent>> freed;
  Tables& all = tables();
  {
    const std::lock_guard lock(all.mutex);
    for (auto place = all.sent.begin(); place != all.sent.end();) {
      Sent* sent = *place;
      prune(*sent, finished);
      if (sent->in_limbo && sent->outgoing.empty()) {
        freed.emplace_back(sent);
        place = all.sent.erase(place);
      } else {
        ++place;
      }
    }
    std::erase_if(all.exported, [](const auto& entry) { return entry.second.expired(); });
  }
  return freed.size();
}

Usage usage() {
  Usage result;
  Tables& all = tables();
  const std::lock_guard lock(all.mutex);
  if (!of_this_process()) {
    return result;
  }
  for (const Sent* sent : all.sent) {
    result.limbo += sent->in_limbo;
    for (const Outgoing& message : sent->outgoing) {
      const bool held = SentCounters::get().held(message.slot);
      result.held += held;
      result.sent += !held && SentCounters::get().in_use(message.slot);
    }
  }
  result.received = all.received.size();
  for (const Received* received : all.received) {
    const int process = received->counters->process();
    if (!received->counters->sender_alive() &&
        std::find(result.ended.begin(), result.ended.end(), process) == result.ended.end()) {
      result.ended.push_back(process);
    }
  }
  return result;
}

} // namespace c10::musa::ipc
