#include "error.h"
#include "model_runner.h"

#include <algorithm>

namespace llmc {

int size_kv_cache(const Limits &limits, size_t bytes_per_block,
                  const KvCacheOptions &options, size_t free_bytes,
                  double default_fraction) {
  if (options.tokens < 0 || options.bytes < 0)
    fail(LLMC_INVALID_ARGUMENT,
         "kv_cache_tokens and kv_cache_bytes must not be negative");
  if (!(options.free_memory_fraction >= 0 && options.free_memory_fraction <= 1))
    fail(LLMC_INVALID_ARGUMENT,
         "free_memory_fraction must be in [0, 1], found ",
         options.free_memory_fraction);
  if (bytes_per_block == 0)
    bytes_per_block = 1; // a model without attention layers

  // All sequences at full length; a larger pool would never be touched.
  int64_t blocks_per_sequence =
      (int64_t{limits.max_seq_len} + limits.block_size - 1) / limits.block_size;
  int64_t useful = blocks_per_sequence * limits.max_batch_size;

  double fraction = options.free_memory_fraction > 0
                        ? options.free_memory_fraction
                        : default_fraction;
  int64_t affordable =
      static_cast<int64_t>(static_cast<double>(free_bytes) * fraction) /
          static_cast<int64_t>(bytes_per_block) -
      1;
  int64_t wanted = affordable;
  if (options.tokens > 0)
    wanted = (options.tokens + limits.block_size - 1) / limits.block_size;
  else if (options.bytes > 0)
    wanted = options.bytes / static_cast<int64_t>(bytes_per_block) - 1;
  wanted = std::min(wanted, useful);

  size_t needed =
      static_cast<size_t>(std::max<int64_t>(wanted, 1) + 1) * bytes_per_block;
  if (wanted < 1 || needed > free_bytes)
    fail(LLMC_OUT_OF_MEMORY,
         "the KV pool does not fit: ", std::max<int64_t>(wanted, 1),
         " + 1 blocks of ", limits.block_size, " tokens take ", needed,
         " bytes (", bytes_per_block, " a block); free: ", free_bytes,
         " bytes, allowed share ", fraction,
         "; ask for fewer kv_cache_tokens, or free memory");
  return static_cast<int>(
      std::min<int64_t>(wanted + 1, INT32_MAX / limits.block_size));
}

} // namespace llmc
