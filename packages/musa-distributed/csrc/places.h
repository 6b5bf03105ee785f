// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Where the ranks of a group run, for messages: a rank that cannot be reached is found by its host and addresses.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <map>
#include <string>

namespace c10d::mccl {

// By rank: "host-a (eth0 10.0.0.1)".
using Places = std::map<int, std::string>;

// Host name and the addresses of the network interfaces that are up, without loopback; with MCCL_SOCKET_IFNAME if it is set.
std::string own_place();

// "\n  host-a (eth0 10.0.0.1): ranks 0, 1", a line for each place; empty if no place is known.
std::string describe(const Places& places);

// "the store at 10.0.0.1:29500"
std::string describe(const c10::intrusive_ptr<Store>& store);

} // namespace c10d::mccl
