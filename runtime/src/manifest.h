#pragma once
// manifest.json: what the engine is, for which target, within which limits, and
// the hashes of its parts.

#include "dtype.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llmc {

// Versions this runtime reads. When N moves up, N-1 stays readable: users must
// not be forced to rebuild by an upgrade.
inline constexpr int kFormatVersionMin = 1;
inline constexpr int kFormatVersionMax = 1;

struct TargetInfo {
  std::string name; // "host", "sm_90"
  std::string arch; // "x86-64", "sm_90a"
  std::vector<std::string> features;
};

struct ModelInfo {
  std::string architecture, name;
  int vocab_size = 0;
  int bos_token_id = -1;
  std::vector<int32_t> eos_token_ids;
};

struct Limits {
  int max_batch_size = 0;     // sequences of one step
  int max_num_tokens = 0;     // tokens of one step
  int max_seq_len = 0;        // tokens of one sequence
  int block_size = 0;         // tokens of one KV block
  int max_blocks_per_seq = 0; // columns of the block table
};

struct WeightInfo {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::string sha256; // empty: not recorded
  size_t bytes() const;
};

struct PartInfo {
  std::string path;
  uint64_t bytes;
  std::string sha256;
};

struct Manifest {
  int format_version = 0;
  std::string compiler; // "llmc 0.1.0"
  TargetInfo target;
  ModelInfo model;
  Limits limits;
  bool weights_bound = false;
  std::vector<WeightInfo> weights;
  std::vector<PartInfo> parts;
};

Manifest parse_manifest(std::span<const std::byte> text);

} // namespace llmc
