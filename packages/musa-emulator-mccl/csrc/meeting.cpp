// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "meeting.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/stat.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>

namespace musa_emulator::mccl {
namespace {

constexpr std::chrono::minutes kPatience{10};
constexpr char kMagic[] = "musa-emulator mccl 1";

struct Content {
  char magic[sizeof kMagic];
  char address[46]; // of IPv4 or IPv6, as text
  uint16_t port;
  uint64_t nonce;
};
static_assert(sizeof(Content) <= MCCL_UNIQUE_ID_BYTES);

struct Started {
  std::mutex mutex;
  std::map<std::string, c10::intrusive_ptr<c10d::Store>> stores; // by key
};

// The stores that this process started and not all ranks have left yet.
Started& started() {
  static Started& instance = *new Started();
  return instance;
}

std::string key_of(const Content& content) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(content.nonce));
  return text;
}

c10::intrusive_ptr<c10d::TCPStore> open_store(const std::string& address, uint16_t port, bool server) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = server;
  options.waitWorkers = false;
  options.timeout = kPatience;
  return c10::make_intrusive<c10d::TCPStore>(address, options);
}

} // namespace

std::string own_address() {
  const char* wanted = std::getenv("MCCL_SOCKET_IFNAME");
  if (wanted == nullptr || *wanted == '\0') {
    return "127.0.0.1";
  }
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    throw std::runtime_error("the network interfaces of this machine cannot be listed");
  }
  std::string found;
  for (const ifaddrs* i = first; i != nullptr && found.empty(); i = i->ifa_next) {
    if (i->ifa_addr != nullptr && i->ifa_addr->sa_family == AF_INET && std::strcmp(i->ifa_name, wanted) == 0) {
      char text[INET_ADDRSTRLEN];
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr, text, sizeof text);
      found = text;
    }
  }
  freeifaddrs(first);
  if (found.empty()) {
    throw std::runtime_error(std::string("MCCL_SOCKET_IFNAME is '") + wanted + "', and no such interface has an IPv4 address");
  }
  return found;
}

std::string host_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat pids = {};
  stat("/proc/self/ns/pid", &pids);
  return boot + '/' + std::to_string(pids.st_ino);
}

void make_id(mcclUniqueId* id) {
  Content content = {};
  std::memcpy(content.magic, kMagic, sizeof kMagic);
  const std::string address = own_address();
  std::snprintf(content.address, sizeof content.address, "%s", address.c_str());
  std::random_device random;
  content.nonce = (uint64_t{random()} << 32) | random();
  auto store = open_store(address, 0, /*server=*/true);
  content.port = store->getPort();
  const std::lock_guard lock(started().mutex);
  started().stores[key_of(content)] = std::move(store);
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, &content, sizeof content);
}

Meeting::Meeting(const mcclUniqueId& id) {
  Content content;
  std::memcpy(&content, id.internal, sizeof content);
  if (std::memcmp(content.magic, kMagic, sizeof kMagic) != 0) {
    throw std::invalid_argument("the bytes are no id that mcclGetUniqueId of this library made");
  }
  key_ = key_of(content);
  store_ = open_store(content.address, content.port, /*server=*/false);
}

void Meeting::leave(int ranks) {
  // Of several ranks in the process that started the store, the first to come here ends it.
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
