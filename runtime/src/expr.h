#pragma once
// Size expressions of plan.json: an integer, a size name, or [op, a, b].

#include "json_view.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

struct Sizes {
  int64_t T = 0;  // tokens of the step
  int64_t S = 0;  // sequences of the step
  int64_t R = 0;  // logit rows of the step
  int64_t NB = 0; // KV blocks of the pool, block 0 included
  int64_t B = 0;  // max_blocks_per_seq
};

class Expr {
public:
  Expr() = default;
  static Expr constant(int64_t value);
  static Expr parse(const JsonView &json);

  // Throws LLMC_BAD_ENGINE on a division by a non-positive number or on
  // overflow.
  int64_t evaluate(const Sizes &sizes) const;

  // True when the value depends on the step (T, S or R) and must be computed
  // again each time.
  bool depends_on_step() const;

private:
  enum class Op : uint8_t {
    Constant,
    T,
    S,
    R,
    NB,
    B,
    Add,
    Sub,
    Mul,
    CeilDiv,
    Min,
    Max
  };
  struct Node {
    Op op;
    int64_t value;
  };
  void append(const JsonView &json, int depth);

  std::vector<Node> postfix_; // operands before their operator: evaluation
                              // needs one small stack and no recursion
};

} // namespace llmc
