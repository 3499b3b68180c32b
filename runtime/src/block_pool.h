#pragma once
// Reference-counted KV blocks. Block 0 is reserved: padding rows write there.

#include <cstdint>
#include <optional>
#include <vector>

namespace llmc {

using BlockId = int32_t;

class BlockPool {
public:
  explicit BlockPool(int num_blocks); // block 0 included

  std::optional<BlockId>
  allocate(); // with one reference; nothing when all are in use
  void retain(BlockId block);
  void release(
      BlockId block); // the block is free again when its last reference goes

  int num_usable() const { return static_cast<int>(references_.size()) - 1; }
  int num_free() const { return static_cast<int>(free_.size()); }
  int num_used() const { return num_usable() - num_free(); }
  int references(BlockId block) const {
    return references_[static_cast<size_t>(block)];
  }

private:
  std::vector<BlockId>
      free_; // last one is given next: the block most likely to be in a cache
  std::vector<int> references_;
};

} // namespace llmc
