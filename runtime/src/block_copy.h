#pragma once
// Copies of whole KV blocks, which a step makes before its launches. In order:
// a block may be read by one copy and written by the next.

#include "block_pool.h"

namespace llmc {

struct BlockCopy {
  enum class Kind {
    OnDevice, // block -> block
    ToHost,   // block -> host block
    ToDevice, // host block -> block
  };
  Kind kind;
  BlockId source, target;
};

} // namespace llmc
