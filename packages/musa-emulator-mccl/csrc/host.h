// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Identity of this host for other ranks: identity string, name, and the network address that they connect to.
#pragma once

#include <optional>
#include <string>

namespace musa_emulator::mccl {

// Equal for processes on the same host. Contains boot id, network namespace and host name, because containers with
// the same kernel are separate hosts on the network.
std::string host_identity();

// Equal for processes that have the same ids for each other: boot id and pid namespace.
std::string pid_space();

std::string host_name();

struct Interface {
  std::string name;    // "eth0"
  std::string address; // IPv4, or IPv6 if the interface has no IPv4 address
};

// Returns the first interface that is up and matches MCCL_SOCKET_IFNAME; "docker*" and loopback interfaces are used
// last. MCCL_SOCKET_IFNAME is a list of prefixes in NCCL's syntax: "eth,ib", "=eth0" for whole names, "^docker" to
// exclude, "^=docker0". Throws std::runtime_error, with the list of interfaces, if none matches.
Interface own_interface();

bool is_loopback(const std::string& address);

// Returns the address of a loopback interface that is up, or nullopt.
std::optional<std::string> loopback_address();

} // namespace musa_emulator::mccl
