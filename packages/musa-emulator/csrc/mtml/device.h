// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The source of the library's readings. Each SDK that ships this library implements it once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mtml.h"
#include "mtml/processes.h"

namespace mtml {

enum class Reading {
  Utilization,       // percent
  MemoryUtilization, // percent
  Temperature,       // degrees Celsius
  Power,             // milliwatts
  Clock,             // MHz, as all clocks
  MaxClock,
  MemoryClock,
  MemoryMaxClock,
  MemoryBusWidth, // bits
  Cores,
  Fans,     // number of fans
  FanSpeed, // percent
};

// A device of the machine. Functions return MTML_ERROR_NOT_SUPPORTED, and leave their results unchanged, for values
// that the device does not have. Called by one thread at a time.
class Device {
 public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual std::string name() const = 0;
  virtual std::string uuid() const = 0;
  virtual MtmlBrandType brand() const = 0;
  virtual MtmlReturn pci(MtmlPciInfo* info) const = 0;
  virtual MtmlReturn serial(std::string* number) const = 0;
  virtual MtmlReturn memory(uint64_t* total, uint64_t* used) = 0;
  virtual MtmlReturn reading(Reading reading, unsigned* value) = 0;
  virtual MtmlReturn processes(std::vector<MusaMtmlProcess>* found) = 0;
  virtual MtmlReturn peer_access(const Device& other) const = 0;
  virtual MtmlReturn processor_set(std::vector<unsigned long>* set) const = 0;
  virtual MtmlReturn memory_node_set(std::vector<unsigned long>* set) const = 0;
};

// Lists the devices in the order of their numbers, and the version of the driver. Called once for each mtmlLibraryInit
// of a process that has no open library.
MtmlReturn open_devices(std::vector<std::unique_ptr<Device>>* devices, std::string* driver);
// Called after the devices have been destroyed.
void close_devices();

} // namespace mtml
