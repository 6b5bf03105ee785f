// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "communicator.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <unistd.h>

#include <chrono>
#include <set>
#include <sstream>
#include <stdexcept>

#include "engine/api.h"
#include "engine/stream.h"
#include "host.h"
#include "log.h"
#include "meeting.h"

namespace musa_emulator::mccl {
namespace {

constexpr std::chrono::milliseconds kTimeToWrite{200};

std::vector<uint8_t> to_bytes(const std::string& text) { return {text.begin(), text.end()}; }

std::string to_text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// The properties that a rank publishes. Every rank reads those of all ranks and so comes to the same conclusion.
struct Introduction {
  std::string ranks; // number of ranks
  std::string host, name;
  std::string interface, address;
  std::string device;
  std::string process;

  static Introduction own(int ranks, const Device& device) {
    const Interface interface = own_interface();
    return {std::to_string(ranks),           host_identity(),         host_name(), interface.name, interface.address,
            std::to_string(device.physical), std::to_string(getpid())};
  }

  static Introduction read(const std::string& text) {
    Introduction read;
    std::istringstream lines(text);
    for (std::string* field :
         {&read.ranks, &read.host, &read.name, &read.interface, &read.address, &read.device, &read.process}) {
      std::getline(lines, *field);
    }
    return read;
  }

  std::string text() const {
    return ranks + '\n' + host + '\n' + name + '\n' + interface + '\n' + address + '\n' + device + '\n' + process;
  }
  std::string where() const { return "host '" + name + "' (" + interface + ' ' + address + ')'; }
};

struct Ranks {
  bool alone;    // all other ranks are in other processes
  bool one_host; // all ranks are on this host
};

Ranks introduce(c10d::Store& store, int ranks, int rank, const Device& device) {
  store.set("rank" + std::to_string(rank), to_bytes(Introduction::own(ranks, device).text()));
  std::vector<Introduction> all;
  std::set<std::string> hosts;
  std::map<std::string, int> seats, of_process;
  for (int other = 0; other < ranks; ++other) {
    const Introduction& its = all.emplace_back(Introduction::read(to_text(store.get("rank" + std::to_string(other)))));
    if (its.ranks != std::to_string(ranks)) {
      throw std::invalid_argument(
          "rank " + std::to_string(other) + " was started with nranks=" + its.ranks + ", and rank " +
          std::to_string(rank) + " with nranks=" + std::to_string(ranks) + "; rank " + std::to_string(other) +
          " is on " + its.where());
    }
    const auto [taken, fresh] = seats.emplace(its.host + '\n' + its.device, other);
    if (!fresh) {
      throw std::invalid_argument(
          "ranks " + std::to_string(taken->second) + " and " + std::to_string(other) + " are on one device of " +
          its.where() +
          ". Each rank needs its own device. Fix: call musaSetDevice before mcclCommInitRank; "
          "MUSA_EMULATOR_DEVICES sets the number of devices");
    }
    hosts.insert(its.host);
    ++of_process[its.host + '\n' + its.process];
  }
  for (int other = 0; other < ranks; ++other) {
    const Introduction& its = all[static_cast<size_t>(other)];
    if (hosts.size() > 1 && is_loopback(its.address)) {
      throw std::runtime_error(
          "rank " + std::to_string(other) + " on " + its.where() +
          " has a loopback address, which other hosts cannot reach. Likely causes: MCCL_SOCKET_IFNAME selects the "
          "loopback interface there; no other interface of that host is up. Fix: set MCCL_SOCKET_IFNAME there to the "
          "interface that connects the hosts");
    }
    info("rank " + std::to_string(rank) + " connects to rank " + std::to_string(other) + " on " + its.where());
  }
  const Introduction& own = all[static_cast<size_t>(rank)];
  return {of_process[own.host + '\n' + own.process] == 1, hosts.size() == 1};
}

} // namespace

Communicator::Communicator(const mcclUniqueId& id, int count, int own, const Device& on)
    : ranks(count),
      rank(own),
      device(on.ordinal),
      sent_(static_cast<size_t>(count)),
      received_(static_cast<size_t>(count)) {
  Meeting meeting(id);
  if (ranks > 1) {
    const auto store = c10::make_intrusive<c10d::PrefixStore>("mccl", meeting.store());
    const auto [alone, one_host] = introduce(*store, ranks, rank, on);
    alone_ = alone;
    transport_ = std::make_unique<Transport>(
        c10::make_intrusive<c10d::PrefixStore>("gloo", store), rank, ranks, one_host, meeting.secret());
    if (rank == 0) {
      store->set("ledger", to_bytes(ledger_.create(ranks)));
    } else if (const auto problem = ledger_.open(to_text(store->get("ledger")), ranks)) {
      info(name() + " shares no page with rank 0, so mismatched calls are not detected: " + *problem);
    }
    transport_->barrier(); // all ranks have opened rank 0's ledger
  }
  meeting.leave(ranks);
}

Communicator::~Communicator() {
  if ((gate.load() & kGateUnloading) != 0) {
    (void)transport_.release(); // leaked: a graph kept it until process exit, when torch's library may be unloaded
  }
}

std::string Communicator::name() const {
  return "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " on device " + std::to_string(device);
}

musaError_t Communicator::issue(Stream& stream, std::shared_ptr<Launch> launch) {
  const std::lock_guard lock(issue_mutex_);
  std::vector<Fence> after;
  if (last_.stream != &stream && !last_.reached()) {
    after.push_back(last_);
  }
  const musaError_t status = submit(stream, KernelOperation{std::move(launch)}, std::move(after));
  if (status == musaSuccess && stream.capture.load() == nullptr) {
    last_ = {&stream, stream.submitted.load()};
  }
  return status;
}

musaError_t Communicator::drain() {
  Fence last;
  {
    const std::lock_guard lock(issue_mutex_);
    last = last_;
  }
  if (last.reached()) {
    return musaSuccess;
  }
  Lock lock(engine().mutex);
  return wait_for(last, lock);
}

void Communicator::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (transport_ == nullptr || !alone_ || aborted_ || async_error() != mcclSuccess) {
      return;
    }
  }
  try {
    transport_->barrier();
  } catch (const std::exception& error) {
    info(name() + " does not wait for the others: " + error.what());
  }
}

mcclRedOp_t Communicator::add_multiplier(PreMultiplier multiplier) {
  const std::lock_guard lock(mutex_);
  multipliers_[next_multiplier_] = std::make_shared<const PreMultiplier>(multiplier);
  return static_cast<mcclRedOp_t>(next_multiplier_++);
}

bool Communicator::remove_multiplier(mcclRedOp_t op) {
  const std::lock_guard lock(mutex_);
  return multipliers_.erase(op) != 0;
}

std::optional<Reduction> Communicator::reduction(mcclRedOp_t op) const {
  if (op >= mcclSum && op <= mcclAvg) {
    return Reduction{op, nullptr};
  }
  const std::lock_guard lock(mutex_);
  const auto found = multipliers_.find(op);
  return found != multipliers_.end() ? std::optional(Reduction{mcclSum, found->second}) : std::nullopt;
}

bool Communicator::begin() {
  const std::lock_guard lock(mutex_);
  running_ += !aborted_;
  return !aborted_;
}

void Communicator::end() {
  const std::lock_guard lock(mutex_);
  --running_;
  changed_.notify_all();
}

void Communicator::wait_for_abort() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return aborted_; });
  throw Aborted();
}

void Communicator::hang(const std::string& why) {
  warn(why + "; the call does not end before mcclCommAbort");
  wait_for_abort();
}

void Communicator::mismatch(const std::string& why) {
  error_.store(mcclInvalidUsage);
  hang(why);
}

void Communicator::fail(mcclResult_t result, const std::string& why) {
  std::unique_lock lock(mutex_);
  if (aborted_) {
    return;
  }
  error_.store(result);
  lock.unlock();
  warn(name() + " cannot go on: " + mcclGetErrorString(result) + ": " + why.substr(0, why.find('\n')));
  lock.lock();
  changed_.wait(lock, [this] { return aborted_; });
}

void Communicator::abort() {
  std::unique_lock lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
  // Closing a connection leaves a thread blocked in Gloo if Gloo has written a part of its message. The peers still read, so
  // the rest is written soon if the connection stays open. The thread then waits to receive, which closing ends.
  changed_.wait_for(lock, kTimeToWrite, [this] { return running_ == 0; });
  lock.unlock();
  if (transport_ != nullptr) {
    transport_->abort("the communicator was aborted by rank " + std::to_string(rank));
  }
  lock.lock();
  changed_.wait(lock, [this] { return running_ == 0; });
}

} // namespace musa_emulator::mccl
