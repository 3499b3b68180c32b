#pragma once
// plan.json: the flat list of launches that makes one step, for each range of
// token counts.

#include "dtype.h"
#include "expr.h"
#include "manifest.h"
#include "step_inputs.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace llmc {

struct ArenaBuffer {
  std::string name;
  DType dtype;
  std::vector<Expr> shape;
  uint64_t offset, bytes;
};

struct KvLayer {
  int heads, head_dim, v_head_dim;
  DType dtype;
  std::optional<int> window;
};

struct CodeObject {
  std::string path;
  std::string kind; // "host" or "cubin"
};

struct Kernel {
  std::string name;
  int code;
  std::string entry;
  std::array<uint32_t, 3> block, cluster;
  uint32_t shared_bytes;
  bool pdl; // programmatic dependent launch: may start before its predecessor
            // has drained
};

struct BufferRef {
  int index;
};
struct WeightRef {
  std::string name;
};
struct InputRef {
  StepInput input;
};
struct KvRef {
  bool is_value;
  int layer;
};
using Address = std::variant<BufferRef, WeightRef, InputRef, KvRef>;

struct IntegerArg {
  Expr value;
  bool wide;
}; // wide: i64, else i32
struct FloatArg {
  float value;
};
struct TensorMapArg {
  Address base;
  DType dtype;
  std::vector<Expr> shape;   // innermost first
  std::vector<Expr> strides; // bytes, without the innermost
  std::vector<uint32_t> box; // innermost first
  int swizzle, l2_promotion; // bytes
};
using Argument = std::variant<Address, IntegerArg, FloatArg, TensorMapArg>;

struct Launch {
  int kernel;
  std::array<Expr, 3> grid;
  std::vector<Argument> args;
};

struct Range {
  int min_tokens, max_tokens; // inclusive
  std::vector<Launch> launches;
};

struct Plan {
  int block_size;
  std::vector<KvLayer> kv_layers;
  uint64_t arena_bytes;
  std::vector<ArenaBuffer> buffers;
  std::vector<StepInput> inputs;
  int logits;                     // buffer, f32 [R, vocab_size]
  std::optional<int> next_tokens; // buffer, i32 [R], when the device samples
  std::vector<CodeObject> code;
  std::vector<Kernel> kernels;
  std::vector<Range> ranges;
  int max_logit_rows; // R that the logits buffer has room for

  size_t kv_bytes_per_block() const; // all layers, K and V
};

// Parses and checks the plan by itself and against the manifest: indexes,
// alignment, arena bounds, coverage of the token ranges, known weights, input
// shapes. What passes can be executed without further checks.
Plan parse_plan(std::span<const std::byte> text, const Manifest &manifest);

} // namespace llmc
