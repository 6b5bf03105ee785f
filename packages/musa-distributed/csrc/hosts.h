// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Hosts and addresses of the ranks of a group, for messages that help to find an unreachable rank.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <map>
#include <string>

namespace c10d::mccl {

// Maps the rank to a text such as "host-a (eth0 10.0.0.1)".
using Hosts = std::map<int, std::string>;

// Returns the host name and the addresses of the network interfaces that are up, without loopback; and
// MCCL_SOCKET_IFNAME if it is set.
std::string own_host();

// Returns "\n  host-a (eth0 10.0.0.1): ranks 0, 1", one line per host; empty if `hosts` is empty.
std::string describe(const Hosts& hosts);

// Returns "the store at 10.0.0.1:29500".
std::string describe(const c10::intrusive_ptr<Store>& store);

} // namespace c10d::mccl
