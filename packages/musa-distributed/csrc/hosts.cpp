// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "hosts.h"

#include <arpa/inet.h>
#include <c10/musa/MUSAEnvironment.h>
#include <c10/util/StringUtil.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

namespace c10d::mccl {
namespace {

constexpr size_t kMostAddresses = 4;

std::vector<std::string> addresses() {
  std::vector<std::string> found;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return found;
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, freeifaddrs);
  for (const ifaddrs* i = first; i != nullptr && found.size() < kMostAddresses; i = i->ifa_next) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0 || (i->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    if (i->ifa_addr->sa_family == AF_INET) {
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr, text.data(), text.size());
    } else if (i->ifa_addr->sa_family == AF_INET6) {
      const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(i->ifa_addr)->sin6_addr;
      if (!IN6_IS_ADDR_LINKLOCAL(&six)) {
        inet_ntop(AF_INET6, &six, text.data(), text.size());
      }
    }
    if (text.front() != '\0') {
      found.push_back(c10::str(i->ifa_name, " ", text.data()));
    }
  }
  return found;
}

} // namespace

std::string own_host() {
  std::array<char, 256> name{};
  const bool named = gethostname(name.data(), name.size() - 1) == 0;
  std::vector<std::string> details = addresses();
  if (details.empty()) {
    details.emplace_back("loopback address only");
  }
  const char* const wanted = std::getenv("MCCL_SOCKET_IFNAME");
  if (wanted != nullptr && *wanted != '\0') {
    details.push_back(c10::str("MCCL_SOCKET_IFNAME=", c10::musa::printable(wanted)));
  }
  return c10::str(named ? name.data() : "unnamed host", " (", c10::Join(", ", details), ")");
}

std::string describe(const Hosts& hosts) {
  std::map<std::string, std::vector<int>> ranks;
  for (const auto& [rank, host] : hosts) {
    ranks[host].push_back(rank);
  }
  std::string text;
  for (const auto& [host, its] : ranks) {
    text += c10::str("\n  ", host, its.size() == 1 ? ": rank " : ": ranks ", c10::Join(", ", its));
  }
  return text;
}

std::string describe(const c10::intrusive_ptr<Store>& store) {
  auto bare = store;
  if (auto* prefixed = dynamic_cast<PrefixStore*>(store.get())) {
    bare = prefixed->getUnderlyingNonPrefixStore();
  }
  if (const auto* tcp = dynamic_cast<const TCPStore*>(bare.get())) {
    return c10::str("the store at ", tcp->getHost(), ":", tcp->getPort());
  }
  if (const auto* file = dynamic_cast<const FileStore*>(bare.get())) {
    return c10::str("the store in ", file->getPath());
  }
  return "the store";
}

} // namespace c10d::mccl
