// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "meeting.h"

#include <netdb.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include "host.h"
#include "log.h"

namespace musa_emulator::mccl {
namespace {

constexpr std::chrono::minutes kPatience{10};
constexpr char kMagic[] = "musa-emulator mccl 3";

struct Content {
  char magic[sizeof kMagic];
  char address[46]; // IPv4 or IPv6, as text
  uint16_t port;
  uint64_t nonce;
  uint64_t secret;
  uint64_t host;      // hash of its identity
  char host_name[32]; // for messages, possibly truncated
};
static_assert(sizeof(Content) <= MCCL_UNIQUE_ID_BYTES);

uint64_t hash_of(const std::string& identity) {
  uint64_t hash = 14695981039346656037U; // FNV-1a: std::hash may differ between two builds
  for (const char c : identity) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  return hash;
}

struct Started {
  std::mutex mutex;
  std::map<std::string, c10::intrusive_ptr<c10d::Store>> stores; // by key
};

// The stores that this process started and that some ranks still use.
Started& started() {
  static Started& instance = *new Started();
  return instance;
}

std::string in_hex(uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

std::string key_of(const Content& content) { return in_hex(content.nonce); }

c10::intrusive_ptr<c10d::TCPStore> open_store(const Content& content, std::optional<int> listening = std::nullopt) {
  c10d::TCPStoreOptions options;
  options.port = content.port;
  options.isServer = listening.has_value();
  options.masterListenFd = listening;
  options.waitWorkers = false;
  options.timeout = kPatience;
  return c10::make_intrusive<c10d::TCPStore>(content.address, options);
}

// Returns a socket bound to a free port of this address only: by default a TCPStore, which has no authentication,
// listens on all interfaces. The store takes ownership of the socket.
int bind_to(const std::string& address, uint16_t* port) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  if (getaddrinfo(address.c_str(), "0", &hints, &found) != 0) {
    throw std::runtime_error(address + " is not a network address");
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  const int bound = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage taken = {};
  socklen_t length = sizeof taken;
  if (bound < 0 || bind(bound, found->ai_addr, found->ai_addrlen) != 0 ||
      getsockname(bound, reinterpret_cast<sockaddr*>(&taken), &length) != 0) {
    const int reason = errno;
    if (bound >= 0) {
      close(bound);
    }
    throw std::runtime_error("cannot bind a port of " + address + ": " + std::strerror(reason));
  }
  // sockaddr_in and sockaddr_in6 have the port at the same offset.
  *port = ntohs(reinterpret_cast<const sockaddr_in*>(&taken)->sin_port);
  return bound;
}

} // namespace

void make_id(mcclUniqueId* id) {
  Content content = {};
  std::memcpy(content.magic, kMagic, sizeof kMagic);
  const Interface own = own_interface();
  std::snprintf(content.address, sizeof content.address, "%s", own.address.c_str());
  std::random_device random;
  content.nonce = (uint64_t{random()} << 32) | random();
  content.secret = (uint64_t{random()} << 32) | random();
  content.host = hash_of(host_identity());
  std::snprintf(content.host_name, sizeof content.host_name, "%s", host_name().c_str());
  const int listening = bind_to(own.address, &content.port);
  auto store = open_store(content, listening);
  info(
      "mcclGetUniqueId: host '" + host_name() + "', interface " + own.name + ", address " + own.address + " port " +
      std::to_string(content.port));
  const std::lock_guard lock(started().mutex);
  started().stores[key_of(content)] = std::move(store);
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, &content, sizeof content);
}

Meeting::Meeting(const mcclUniqueId& id) {
  Content content;
  std::memcpy(&content, id.internal, sizeof content);
  if (std::memcmp(content.magic, kMagic, sizeof kMagic) != 0) {
    throw std::invalid_argument("the unique id was not created by mcclGetUniqueId of this library");
  }
  content.address[sizeof content.address - 1] = content.host_name[sizeof content.host_name - 1] = '\0';
  key_ = key_of(content);
  secret_ = in_hex(content.secret);
  const std::string from = "host '" + host_name() + "'";
  const std::string where =
      std::string(content.address) + " port " + std::to_string(content.port) + " of host '" + content.host_name + "'";
  if (is_loopback(content.address) && content.host != hash_of(host_identity())) {
    throw std::runtime_error(
        "the unique id names " + where + ", a loopback address, which " + from +
        " cannot reach. Likely causes: MCCL_SOCKET_IFNAME selects the loopback interface there; no other interface of "
        "that host is up. Fix: set MCCL_SOCKET_IFNAME to the interface that connects the hosts");
  }
  info("mcclCommInitRank: " + from + " connects to " + where);
  try {
    store_ = open_store(content);
  } catch (const c10::Error& error) {
    throw std::runtime_error(
        from + " cannot connect to " + where + ", where the unique id was made: " + error.what_without_backtrace());
  }
}

void Meeting::leave(int ranks) {
  // If the process that started the store has several ranks, the first one that leaves shuts it down.
  c10::intrusive_ptr<c10d::Store> mine;
  {
    const std::lock_guard lock(started().mutex);
    const auto found = started().stores.find(key_);
    if (found != started().stores.end()) {
      mine = std::move(found->second);
      started().stores.erase(found);
    }
  }
  store_->add(key_ + "/left", 1);
  if (!mine) {
    return;
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (store_->add(key_ + "/left", 0) < ranks && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

} // namespace musa_emulator::mccl
