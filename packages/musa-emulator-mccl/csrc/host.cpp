// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace musa_emulator::mccl {
namespace {

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  return boot;
}

std::string inode_of(const char* path) {
  struct stat status = {};
  return stat(path, &status) == 0 ? std::to_string(status.st_ino) : "none";
}

// Returns an empty string for an address family that ranks do not connect with. Link-local IPv6 addresses need a
// scope and are skipped.
std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address == nullptr) {
    return "";
  }
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&six)) {
      inet_ntop(AF_INET6, &six, text.data(), text.size());
    }
  }
  return text.data();
}

// In the kernel's order, which lists all IPv4 addresses before the IPv6 ones.
std::vector<Interface> interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    throw std::runtime_error(std::string("cannot list the network interfaces of this host: ") + std::strerror(errno));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* i = first; i != nullptr; i = i->ifa_next) {
    const std::string address = text_of(i->ifa_addr);
    constexpr unsigned kUsable = IFF_UP | IFF_RUNNING; // running: the interface has a carrier
    if ((i->ifa_flags & kUsable) == kUsable && !address.empty()) {
      found.push_back({i->ifa_name, address});
    }
  }
  return found;
}

// The parsed filter of MCCL_SOCKET_IFNAME.
class Wanted {
 public:
  explicit Wanted(std::string text) {
    const auto drop = [&](char mark) {
      const bool there = !text.empty() && text.front() == mark;
      text.erase(0, there ? 1 : 0);
      return there;
    };
    excludes_ = drop('^');
    whole_ = drop('=');
    std::istringstream list(text);
    for (std::string name; std::getline(list, name, ',');) {
      if (!name.empty()) {
        names_.push_back(name);
      }
    }
  }

  bool permits(const std::string& interface) const {
    const bool named = std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
      return whole_ ? interface == name : interface.starts_with(name);
    });
    return named != excludes_;
  }

 private:
  bool excludes_ = false, whole_ = false;
  std::vector<std::string> names_;
};

// The permitted interface with the lowest rank is used.
int rank_of(const Interface& interface) {
  return is_loopback(interface.address) ? 2 : interface.name.starts_with("docker") ? 1 : 0;
}

} // namespace

std::string host_identity() { return boot_id() + '/' + inode_of("/proc/self/ns/net") + '/' + host_name(); }

std::string pid_space() { return boot_id() + '/' + inode_of("/proc/self/ns/pid"); }

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

std::optional<std::string> loopback_address() {
  for (const Interface& interface : interfaces()) {
    if (is_loopback(interface.address)) {
      return interface.address;
    }
  }
  return std::nullopt;
}

Interface own_interface() {
  std::vector<Interface> all = interfaces();
  std::stable_sort(all.begin(), all.end(), [](const Interface& one, const Interface& other) {
    return rank_of(one) < rank_of(other);
  });
  const char* const variable = std::getenv("MCCL_SOCKET_IFNAME");
  if (variable == nullptr || *variable == '\0') {
    if (all.empty()) {
      throw std::runtime_error(
          "host '" + host_name() + "' has no network interface that is up with an address. Fix: ip link set lo up");
    }
    return all.front();
  }
  const Wanted wanted(variable);
  std::string names;
  for (const Interface& interface : all) {
    if (wanted.permits(interface.name)) {
      return interface;
    }
    names += (names.empty() ? "" : ", ") + interface.name + ' ' + interface.address;
  }
  throw std::runtime_error(
      std::string("MCCL_SOCKET_IFNAME is '") + variable + "', and no such interface of host '" + host_name() +
      "' is up with an address. Its interfaces: " + (names.empty() ? "none" : names) +
      ". Fix: set MCCL_SOCKET_IFNAME to one of them, or unset it");
}

} // namespace musa_emulator::mccl
