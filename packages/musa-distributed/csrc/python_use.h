// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Threads of the library run Python code for a while: when the recorder resolves stacks, and in hooks and callbacks of
// the program. If the interpreter finalized meanwhile, the process would abort. So finalization waits for these
// threads, and afterwards they run no Python code. Does not depend on Python itself.
#pragma once

namespace c10d::mccl {

// Held while a thread of the library may run Python. Converts to false once the interpreter is about to finalize: then
// the thread must not run Python.
class PythonUse {
 public:
  PythonUse();
  ~PythonUse();
  PythonUse(const PythonUse&) = delete;
  PythonUse& operator=(const PythonUse&) = delete;
  explicit operator bool() const { return held_; }

 private:
  bool held_;
};

// Called without the GIL before the interpreter finalizes. Returns when no PythonUse is held; later ones convert to
// false.
void end_python_use();

} // namespace c10d::mccl
