// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The library's own threads run Python for a while: where the recorder resolves stacks, and in hooks and callbacks of the
// program. An interpreter that ends meanwhile would end the whole process with an abort; so it waits for them, and from then on
// they leave it alone. Knows nothing of Python itself.
#pragma once

namespace c10d::mccl {

// Lives while a thread of the library may run Python. False once the interpreter is about to end: then Python must not be run.
class PythonUse {
 public:
  PythonUse();
  ~PythonUse();
  PythonUse(const PythonUse&) = delete;
  PythonUse& operator=(const PythonUse&) = delete;
  explicit operator bool() const {
    return held_;
  }

 private:
  bool held_;
};

// Called, without the GIL, when the interpreter is about to end: returns when no PythonUse is true, and none will be.
void end_python_use();

} // namespace c10d::mccl
