// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What torch's library has of Gloo and torch's headers name: the wheel brings c10d's headers and not those of Gloo that they
// include. Declared here as far as they need it and transport.cpp calls it. Nothing of it is defined or derived from.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <string>

namespace gloo {

namespace transport {

class Device;

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

class Pair {
 public:
  virtual ~Pair();
};

namespace tcp {

class Pair : public transport::Pair {
 public:
  // Ends what waits for this peer, with an exception, and the connection.
  std::exception_ptr signalExceptionExternal(const std::string& message);
};

} // namespace tcp
} // namespace transport

class Context {
 public:
  virtual ~Context();
  void setTimeout(std::chrono::milliseconds timeout);
  std::unique_ptr<transport::Pair>& getPair(int rank);
};

} // namespace gloo
