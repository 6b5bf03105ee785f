// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Objects that are kept with graphs: handles are numbers here, because graphs need a driver.
#include "support/hooks.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

using namespace musa_cuda;

namespace {

#define CHECK(condition) \
  if (!(condition)) { \
    std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
    std::exit(1); \
  }

struct Kept {
  explicit Kept(uint64_t graph) {
    const auto object = std::make_shared<int>(0);
    seen = object;
    keep_with_graph(graph, object);
  }
  bool alive() const { return !seen.expired(); }
  std::weak_ptr<int> seen;
};

} // namespace

int main() {
  enum : uint64_t { kGraph = 1, kInstance, kCopy, kParent, kOther };
  const Kept alone(kGraph);
  created(Kind::Graphs, kGraph); // as a capture's end does, whose graph exists before
  CHECK(alone.alive());
  destroyed(Kind::Graphs, kGraph);
  CHECK(!alone.alive());

  const Kept instantiated(kGraph); // the number is used again
  derived(Kind::Graphs, kInstance, kGraph);
  derived(Kind::Graphs, kCopy, kGraph);
  destroyed(Kind::Graphs, kGraph);
  destroyed(Kind::Graphs, kCopy);
  destroyed(Kind::Events, kInstance); // an event may have the same number
  CHECK(instantiated.alive());
  destroyed(Kind::Graphs, kInstance);
  CHECK(!instantiated.alive());

  const Kept contained(kGraph);
  const Kept another(kParent);
  extended(Kind::Graphs, kParent, kGraph);
  destroyed(Kind::Graphs, kGraph);
  CHECK(contained.alive() && another.alive());
  derived(Kind::Graphs, kInstance, kParent);
  destroyed(Kind::Graphs, kParent);
  CHECK(contained.alive() && another.alive());
  extended(Kind::Graphs, kInstance, kOther); // of a graph with which nothing is kept
  destroyed(Kind::Graphs, kInstance);
  CHECK(!contained.alive() && !another.alive());
}
