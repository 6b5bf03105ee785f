// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Declarations of the Gloo classes inside torch's library that torch's headers name. The wheel contains c10d's
// headers, but not the Gloo headers that they include. Only the members that those headers need, and that
// transport.cpp calls, are declared; nothing is defined or derived.
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
  // Fails pending operations with this peer with an exception, and closes the connection.
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
