#include "passes/linalg/Attention.h"
#include "passes/linalg/Patterns.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

using Values = SmallVector<Value>;

// Loops of the score tensor [Hkv, G, n, m] and of the products over it.
enum { Head, Group, Row, Key, Inner };

// scale, softcap, alibi and masks of one score at (head, group, row, key).
static Value emitScore(OpBuilder &b, Location loc, Value score, Value slope,
                       Value offset, const AttentionRule &rule) {
  Type f32 = b.getF32Type();
  auto constant = [&](double value) {
    return floatConstant(b, loc, f32, value);
  };
  score = arith::MulFOp::create(b, loc, score, constant(rule.scale));
  if (rule.softcap) {
    score = arith::MulFOp::create(b, loc, score, constant(1.0 / *rule.softcap));
    score = math::TanhOp::create(b, loc, score);
    score = arith::MulFOp::create(b, loc, score, constant(*rule.softcap));
  }
  Value row = linalg::IndexOp::create(b, loc, Row);
  Value key = linalg::IndexOp::create(b, loc, Key);
  Value distance = arith::SubIOp::create(
      b, loc, key, arith::AddIOp::create(b, loc, row, offset));
  if (slope) {
    Value d = arith::IndexCastOp::create(b, loc, b.getI32Type(), distance);
    d = arith::SIToFPOp::create(b, loc, f32, d);
    score = arith::AddFOp::create(b, loc, score,
                                  arith::MulFOp::create(b, loc, slope, d));
  }
  Value masked = constant(-std::numeric_limits<double>::infinity());
  auto mask = [&](arith::CmpIPredicate predicate, int64_t bound) {
    Value out =
        arith::CmpIOp::create(b, loc, predicate, distance,
                              arith::ConstantIndexOp::create(b, loc, bound));
    score = arith::SelectOp::create(b, loc, out, masked, score);
  };
  if (rule.causal)
    mask(arith::CmpIPredicate::sgt, 0);
  if (rule.window)
    mask(arith::CmpIPredicate::sle, -*rule.window);
  return score;
}

// [Hq] as [Hkv, G].
static Value groupHeads(Emitter &e, Value perHead, int64_t heads,
                        int64_t group) {
  auto type = cast<RankedTensorType>(perHead.getType());
  return tensor::ExpandShapeOp::create(e.builder, e.loc,
                                       type.clone({heads, group}), perHead,
                                       ArrayRef<ReassociationIndices>{{0, 1}});
}

Value llmc::emitAttention(Emitter &e, Value query, Value key, Value value,
                          Value offset, const AttentionRule &rule) {
  OpBuilder &b = e.builder;
  auto queryType = cast<RankedTensorType>(query.getType());
  auto keyType = cast<RankedTensorType>(key.getType());
  int64_t heads = keyType.getDimSize(1), dim = queryType.getDimSize(2);
  int64_t group = queryType.getDimSize(1) / heads;
  int64_t valueDim = cast<RankedTensorType>(value.getType()).getDimSize(2);
  OpFoldResult rows = e.size(query, 0), keys = e.size(key, 0);
  OpFoldResult headsSize = b.getIndexAttr(heads),
               groupSize = b.getIndexAttr(group);

  Value grouped = tensor::ExpandShapeOp::create(
      b, e.loc, queryType.clone({queryType.getDimSize(0), heads, group, dim}),
      query, ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3}},
      SmallVector<OpFoldResult>{rows, headsSize, groupSize,
                                b.getIndexAttr(dim)});

  auto multiplyAdd = [](OpBuilder &b, Location loc, ValueRange v) -> Value {
    return arith::AddFOp::create(b, loc, v[2],
                                 arith::MulFOp::create(b, loc, v[0], v[1]));
  };
  SmallVector<OpFoldResult> scoreSizes{headsSize, groupSize, rows, keys};
  Value scores =
      e.reduce(5, {e.filled(0.0, scoreSizes), {Head, Group, Row, Key}},
               ArrayRef<Emitter::Operand>{{grouped, {Row, Head, Group, Inner}},
                                          {key, {Key, Head, Inner}}},
               multiplyAdd);
  SmallVector<Emitter::Operand> operands{{scores, {Head, Group, Row, Key}}};
  if (rule.alibiSlopes)
    operands.push_back(
        {groupHeads(e, rule.alibiSlopes, heads, group), {Head, Group}});
  scores =
      e.map(e.empty(b.getF32Type(), scoreSizes), operands,
            [&](OpBuilder &b, Location loc, ValueRange v) {
              return emitScore(b, loc, v[0], rule.alibiSlopes ? v[1] : Value(),
                               offset, rule);
            });

  // Softmax over the keys; a sink is one more score that has no value.
  SmallVector<OpFoldResult> statSizes{headsSize, groupSize, rows};
  SmallVector<int64_t> stat{Head, Group, Row};
  Value sinks = rule.sinks ? groupHeads(e, rule.sinks, heads, group) : Value();
  Value lowest =
      sinks
          ? e.map(e.empty(b.getF32Type(), statSizes), {{sinks, {Head, Group}}},
                  [](OpBuilder &, Location, ValueRange v) { return v[0]; })
          : e.filled(std::numeric_limits<float>::lowest(), statSizes);
  Value maxima =
      e.reduce(4, {lowest, stat},
               ArrayRef<Emitter::Operand>{{scores, {Head, Group, Row, Key}}},
               [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                 return arith::MaximumFOp::create(b, loc, v[0], v[1]);
               });
  auto shiftedExp = [](OpBuilder &b, Location loc, Value x,
                       Value max) -> Value {
    return math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, x, max));
  };
  Value weights = e.map(e.empty(b.getF32Type(), scoreSizes),
                        {{scores, {Head, Group, Row, Key}}, {maxima, stat}},
                        [&](OpBuilder &b, Location loc, ValueRange v) {
                          return shiftedExp(b, loc, v[0], v[1]);
                        });
  Value start = sinks ? e.map(e.empty(b.getF32Type(), statSizes),
                              {{sinks, {Head, Group}}, {maxima, stat}},
                              [&](OpBuilder &b, Location loc, ValueRange v) {
                                return shiftedExp(b, loc, v[0], v[1]);
                              })
                      : e.filled(0.0, statSizes);
  Value sums =
      e.reduce(4, {start, stat},
               ArrayRef<Emitter::Operand>{{weights, {Head, Group, Row, Key}}},
               [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                 return arith::AddFOp::create(b, loc, v[0], v[1]);
               });

  // result[row, head, group, inner]
  SmallVector<OpFoldResult> resultSizes{rows, headsSize, groupSize,
                                        b.getIndexAttr(valueDim)};
  Value result =
      e.reduce(5, {e.filled(0.0, resultSizes), {Row, Head, Group, Inner}},
               ArrayRef<Emitter::Operand>{{weights, {Head, Group, Row, Key}},
                                          {value, {Key, Head, Inner}}},
               multiplyAdd);
  result = e.map(result, {{result, {0, 1, 2, 3}}, {sums, {1, 2, 0}}},
                 [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                   return arith::DivFOp::create(b, loc, v[0], v[1]);
                 });
  return tensor::CollapseShapeOp::create(
      b, e.loc, result, ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3}});
}

static Values lowerAttention(AttentionOp op, AttentionOp::Adaptor in,
                             Emitter &e) {
  auto rule = AttentionRule::of(op, in.getSinks(), in.getAlibiSlopes());
  Value result = emitAttention(e, in.getQuery(), in.getKey(), in.getValue(),
                               e.index(0), rule);
  return {e.convert(result, op.getType().getElementType())};
}

void llmc::populateAttentionLowerings(RewritePatternSet &patterns) {
  addLowering<AttentionOp, lowerAttention>(patterns);
}
