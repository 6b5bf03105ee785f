// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// This host as other ranks see it: its identity, its name, and the network address at which they reach it.
#pragma once

#include <string>

namespace musa_emulator::mccl {

// Equal for processes of one host. Boot id, network namespace and host name: network namespaces and containers share a kernel,
// and are hosts of their own to their network.
std::string host_identity();

// Equal for processes that see each other under the same process ids: boot id and pid namespace.
std::string pid_space();

std::string host_name();

struct Interface {
  std::string name;    // "eth0"
  std::string address; // of IPv4, or of IPv6 if the interface has no other
};

// The first interface that is up and that MCCL_SOCKET_IFNAME permits; "docker*" and the loopback interface come last. MCCL_SOCKET_IFNAME is a list of prefixes with NCCL's syntax: "eth,ib", "=eth0" for whole names, "^docker"
// for all but these, "^=docker0". Throws std::runtime_error, which names the interfaces of this host, if none fits.
Interface own_interface();

bool is_loopback(const std::string& address);

} // namespace musa_emulator::mccl
