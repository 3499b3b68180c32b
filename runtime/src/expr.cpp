#include "expr.h"

#include "error.h"

#include <algorithm>
#include <array>
#include <limits>

namespace llmc {

namespace {

constexpr int kMaxDepth = 16;

[[noreturn]] void overflow() {
  fail(LLMC_BAD_ENGINE,
       "plan.json: a size expression overflows 64 bits; recompile the engine");
}

int64_t ceildiv(int64_t a, int64_t b) {
  if (b <= 0)
    fail(LLMC_BAD_ENGINE, "plan.json: ceildiv by ", b,
         " in a size expression; recompile the engine");
  return a / b + (a % b > 0 ? 1 : 0);
}

} // namespace

Expr Expr::constant(int64_t value) {
  Expr result;
  result.postfix_.push_back({Op::Constant, value});
  return result;
}

Expr Expr::parse(const JsonView &json) {
  Expr result;
  result.append(json, 0);
  return result;
}

void Expr::append(const JsonView &json, int depth) {
  static constexpr std::pair<const char *, Op> kSizes[] = {
      {"T", Op::T}, {"S", Op::S}, {"R", Op::R}, {"NB", Op::NB}, {"B", Op::B}};
  static constexpr std::pair<const char *, Op> kOps[] = {
      {"add", Op::Add},         {"sub", Op::Sub}, {"mul", Op::Mul},
      {"ceildiv", Op::CeilDiv}, {"min", Op::Min}, {"max", Op::Max}};
  if (depth >= kMaxDepth)
    json.expected(concat("an expression at most ", kMaxDepth, " levels deep"));
  if (json.is_integer()) {
    postfix_.push_back(
        {Op::Constant, json.integer(std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::max())});
    return;
  }
  if (json.is_string()) {
    std::string name = json.string();
    for (auto [size, op] : kSizes)
      if (name == size) {
        postfix_.push_back({op, 0});
        return;
      }
    json.expected("a size name (T S R NB B)");
  }
  if (!json.is_array() || json.size() != 3)
    json.expected("an integer, a size name or [op, a, b]");
  std::string name = json.at(size_t{0}).string();
  for (auto [text, op] : kOps)
    if (name == text) {
      append(json.at(1), depth + 1);
      append(json.at(2), depth + 1);
      postfix_.push_back({op, 0});
      return;
    }
  json.at(size_t{0}).expected("an operator (add sub mul ceildiv min max)");
}

int64_t Expr::evaluate(const Sizes &sizes) const {
  std::array<int64_t, kMaxDepth + 2> stack{};
  size_t top = 0;
  for (const Node &node : postfix_) {
    switch (node.op) {
    case Op::Constant:
      stack[top++] = node.value;
      continue;
    case Op::T:
      stack[top++] = sizes.T;
      continue;
    case Op::S:
      stack[top++] = sizes.S;
      continue;
    case Op::R:
      stack[top++] = sizes.R;
      continue;
    case Op::NB:
      stack[top++] = sizes.NB;
      continue;
    case Op::B:
      stack[top++] = sizes.B;
      continue;
    default:
      break;
    }
    int64_t b = stack[--top], &a = stack[top - 1];
    switch (node.op) {
    case Op::Add:
      if (__builtin_add_overflow(a, b, &a))
        overflow();
      break;
    case Op::Sub:
      if (__builtin_sub_overflow(a, b, &a))
        overflow();
      break;
    case Op::Mul:
      if (__builtin_mul_overflow(a, b, &a))
        overflow();
      break;
    case Op::CeilDiv:
      a = ceildiv(a, b);
      break;
    case Op::Min:
      a = std::min(a, b);
      break;
    case Op::Max:
      a = std::max(a, b);
      break;
    default:
      break;
    }
  }
  return stack[0];
}

bool Expr::depends_on_step() const {
  return std::any_of(postfix_.begin(), postfix_.end(), [](const Node &node) {
    return node.op == Op::T || node.op == Op::S || node.op == Op::R;
  });
}

} // namespace llmc
