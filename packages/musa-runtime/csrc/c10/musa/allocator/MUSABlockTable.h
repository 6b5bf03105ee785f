// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/allocator/MUSABlockPool.h>
#include <c10/util/flat_hash_map.h>

namespace c10::musa::MUSACachingAllocator {

// The blocks of one device by address, and how they split and merge. Makes no SDK call and takes no lock: guarded by the
// mutex of the DeviceCachingAllocator that owns it.
//
// The map has every allocated block, the first block of every segment, and free blocks that were allocated at their address
// before. So neither reusing a block nor splitting and merging one at the end of a segment changes the map.
class BlockTable {
 public:
  // Returns the block in the map at the address; nullptr if there is none.
  Block* find(const void* ptr) const {
    const auto found = blocks_.find(ptr);
    return found == blocks_.end() ? nullptr : found->second;
  }
  Block* find_allocated(const void* ptr) const {
    Block* block = find(ptr);
    return block != nullptr && block->allocated ? block : nullptr;
  }
  bool empty() const { return blocks_.empty(); }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& entry : blocks_) {
      visit(entry.second);
    }
  }

  void enter(Block* block) {
    if (!block->registered) {
      blocks_[block->ptr] = block;
      block->registered = true;
    }
  }
  void erase(Block* block) {
    if (block->registered) {
      blocks_.erase(block->ptr);
      block->registered = false;
    }
  }

  // Returns a block that is in no list, in no bin and not in the map. Return it with give().
  Block* take() { return store_.take(); }
  void give(Block* block) { store_.give(block); }

  // Shortens the block to its first `size` bytes; returns a block for the others.
  Block* cut(Block* block, size_t size) {
    Block* rest = store_.take();
    rest->ptr = block->ptr + size;
    rest->size = block->size - size;
    rest->home = block->home;
    rest->expandable = block->expandable;
    rest->freed_at = block->freed_at;
    rest->prev = block;
    rest->next = block->next;
    if (rest->next != nullptr) {
      rest->next->prev = rest;
    }
    block->next = rest;
    block->size = size;
    return rest;
  }

  // Joins a free block that is in no bin with its free neighbours; returns the joined block, which is in no bin.
  Block* merge(Block* block) {
    if (Block* next = block->next; next != nullptr && next->available()) {
      block->home->free.remove(next);
      absorb_next(block);
    }
    if (Block* prev = block->prev; prev != nullptr && prev->available()) {
      block->home->free.remove(prev);
      absorb_next(prev);
      return prev;
    }
    return block;
  }

 private:
  // Joins the block with the next one, which is in no bin.
  void absorb_next(Block* block) {
    Block* next = block->next;
    block->size += next->size;
    block->oversize_segment |= next->oversize_segment;
    block->next = next->next;
    if (block->next != nullptr) {
      block->next->prev = block;
    }
    erase(next);
    store_.give(next);
  }

  ska::flat_hash_map<const void*, Block*> blocks_;
  BlockStore store_;
};

} // namespace c10::musa::MUSACachingAllocator
