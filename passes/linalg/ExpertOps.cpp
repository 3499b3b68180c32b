// Mixture of experts, a row and an expert at a time.
#include "passes/linalg/Patterns.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

using Values = SmallVector<Value>;

// Scores of the router in float32 by `softmax` or `sigmoid`.
static Value scoreExperts(Emitter &e, Value logits, bool softmax) {
  Value init = e.empty(e.builder.getF32Type(), e.sizes(logits));
  if (!softmax)
    return e.mapSame(
        init, logits, [](OpBuilder &b, Location loc, ValueRange v) {
          return emitActivation(b, loc, ActivationKind::Sigmoid, v[0]);
        });
  SmallVector<OpFoldResult> rows{e.size(logits, 0)};
  Value maxima = e.reduce(
      2, {e.filled(-std::numeric_limits<double>::infinity(), rows), {0}},
      ArrayRef<Emitter::Operand>{{logits, {0, 1}}},
      [](OpBuilder &b, Location loc, ValueRange v) -> Value {
        return arith::MaximumFOp::create(b, loc, v[0], v[1]);
      });
  Value exps = e.map(init, {{logits, {0, 1}}, {maxima, {0}}},
                     [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                       return math::ExpOp::create(
                           b, loc, arith::SubFOp::create(b, loc, v[0], v[1]));
                     });
  Value sums = e.reduce(2, {e.filled(0.0, rows), {0}},
                        ArrayRef<Emitter::Operand>{{exps, {0, 1}}},
                        [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                          return arith::AddFOp::create(b, loc, v[0], v[1]);
                        });
  return e.map(init, {{exps, {0, 1}}, {sums, {0}}},
               [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                 return arith::DivFOp::create(b, loc, v[0], v[1]);
               });
}

// The index of the first largest element of row t.
static Value argmax(OpBuilder &b, Location loc, Value rows, Value t) {
  Emitter e(b, loc);
  Value count = tensor::DimOp::create(b, loc, rows, 1);
  Value best =
      tensor::ExtractOp::create(b, loc, rows, ValueRange{t, e.index(0)});
  auto loop = scf::ForOp::create(
      b, loc, e.index(1), count, e.index(1), ValueRange{best, e.index(0)},
      [&](OpBuilder &b, Location loc, Value i, ValueRange state) {
        Value x = tensor::ExtractOp::create(b, loc, rows, ValueRange{t, i});
        Value better = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT,
                                             x, state[0]);
        Value value = arith::SelectOp::create(b, loc, better, x, state[0]);
        Value index = arith::SelectOp::create(b, loc, better, i, state[1]);
        scf::YieldOp::create(b, loc, ValueRange{value, index});
      });
  return loop.getResult(1);
}

static Values lowerMoeRoute(MoeRouteOp op, MoeRouteOp::Adaptor in, Emitter &e) {
  if (op.getGroups().value_or(1) > 1) {
    op.emitError("has no lowering to linalg with expert groups");
    return {};
  }
  OpBuilder &b = e.builder;
  Value scores = scoreExperts(e, in.getLogits(), op.getScoring() == "softmax");
  Value choice = scores;
  if (in.getBias())
    choice = e.map(e.empty(b.getF32Type(), e.sizes(scores)),
                   {{scores, {0, 1}}, {in.getBias(), {1}}},
                   [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                     return arith::AddFOp::create(b, loc, v[0], v[1]);
                   });

  auto weightsType = cast<RankedTensorType>(op.getWeights().getType());
  auto expertsType = cast<RankedTensorType>(op.getExperts().getType());
  Value rows = tensor::DimOp::create(b, e.loc, scores, 0);
  SmallVector<OpFoldResult> sizes{rows, b.getIndexAttr(op.getTopK())};
  // Takes the best expert top_k times, striking each out of `choice`.
  auto outer = scf::ForOp::create(
      b, e.loc, e.index(0), rows, e.index(1),
      ValueRange{e.filled(0.0, sizes), e.empty(expertsType, sizes), choice},
      [&](OpBuilder &b, Location loc, Value t, ValueRange state) {
        Emitter e(b, loc);
        auto inner = scf::ForOp::create(
            b, loc, e.index(0), e.index(op.getTopK()), e.index(1), state,
            [&](OpBuilder &b, Location loc, Value k, ValueRange state) {
              Emitter e(b, loc);
              Value expert = argmax(b, loc, state[2], t);
              Value score = tensor::ExtractOp::create(b, loc, scores,
                                                      ValueRange{t, expert});
              Value id =
                  arith::IndexCastOp::create(b, loc, b.getI32Type(), expert);
              Value struck = e.f32(-std::numeric_limits<double>::infinity());
              scf::YieldOp::create(
                  b, loc,
                  ValueRange{tensor::InsertOp::create(b, loc, score, state[0],
                                                      ValueRange{t, k}),
                             tensor::InsertOp::create(b, loc, id, state[1],
                                                      ValueRange{t, k}),
                             tensor::InsertOp::create(b, loc, struck, state[2],
                                                      ValueRange{t, expert})});
            });
        scf::YieldOp::create(b, loc, inner.getResults());
      });

  Value weights = outer.getResult(0);
  SmallVector<Emitter::Operand> operands{{weights, {0, 1}}};
  if (op.getRenormalize()) {
    SmallVector<OpFoldResult> perRow{rows};
    Value sums =
        e.reduce(2, {e.filled(0.0, perRow), {0}}, operands,
                 [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                   return arith::AddFOp::create(b, loc, v[0], v[1]);
                 });
    operands.push_back({sums, {0}});
  }
  Value scale = e.f32(op.getScale().convertToDouble());
  weights =
      e.map(e.empty(weightsType, sizes), operands,
            [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
              Value w =
                  op.getRenormalize()
                      ? arith::DivFOp::create(b, loc, v[0], v[1]).getResult()
                      : v[0];
              return arith::MulFOp::create(b, loc, w, scale);
            });
  return {weights, outer.getResult(1)};
}

// down[e] * glu(gate_up[e] * x) for one row x of shape [1, H].
static Value applyExpert(Emitter &e, MoeMlpOp op, MoeMlpOp::Adaptor in, Value x,
                         Value expert) {
  auto bias = [&](Value biases) {
    return biases ? e.subtensor(biases, expert) : Value();
  };
  Value packed = emitLinear(e, x, e.subtensor(in.getGateUp(), expert),
                            bias(in.getGateUpBias()));
  auto [gate, up] = unpackGlu(e, packed, op.getLayout(), /*block=*/1);
  Value init = e.empty(e.builder.getF32Type(), e.sizes(gate));
  Value hidden = emitGlu(e, op.getKind(), gate, up, init);
  return emitLinear(e, hidden, e.subtensor(in.getDown(), expert),
                    bias(in.getDownBias()));
}

static Values lowerMoeMlp(MoeMlpOp op, MoeMlpOp::Adaptor in, Emitter &e) {
  OpBuilder &b = e.builder;
  Value rows = tensor::DimOp::create(b, e.loc, in.getInput(), 0);
  int64_t hidden =
      cast<RankedTensorType>(op.getInput().getType()).getDimSize(1);
  int64_t topK =
      cast<RankedTensorType>(op.getExperts().getType()).getDimSize(1);
  SmallVector<OpFoldResult> one{b.getIndexAttr(1), b.getIndexAttr(hidden)};
  SmallVector<OpFoldResult> unit(2, b.getIndexAttr(1));

  auto perRow = [&](OpBuilder &b, Location loc, Value t, ValueRange state) {
    Emitter e(b, loc);
    SmallVector<OpFoldResult> at{t, b.getIndexAttr(0)};
    Value x =
        tensor::ExtractSliceOp::create(b, loc, in.getInput(), at, one, unit);
    auto experts = scf::ForOp::create(
        b, loc, e.index(0), e.index(topK), e.index(1), e.filled(0.0, one),
        [&](OpBuilder &b, Location loc, Value k, ValueRange sum) {
          Emitter e(b, loc);
          Value id = tensor::ExtractOp::create(b, loc, in.getExperts(),
                                               ValueRange{t, k});
          Value expert =
              arith::IndexCastOp::create(b, loc, b.getIndexType(), id);
          Value weight = tensor::ExtractOp::create(b, loc, in.getWeights(),
                                                   ValueRange{t, k});
          weight = convertElement(b, loc, weight, b.getF32Type());
          Value y = applyExpert(e, op, in, x, expert);
          Value next = e.mapSame(
              sum[0], {y, sum[0]},
              [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                return arith::AddFOp::create(
                    b, loc, v[1], arith::MulFOp::create(b, loc, v[0], weight));
              });
          scf::YieldOp::create(b, loc, next);
        });
    Value row = tensor::InsertSliceOp::create(b, loc, experts.getResult(0),
                                              state[0], at, one, unit);
    scf::YieldOp::create(b, loc, row);
  };
  SmallVector<OpFoldResult> sizes{rows, b.getIndexAttr(hidden)};
  auto loop = scf::ForOp::create(b, e.loc, e.index(0), rows, e.index(1),
                                 e.empty(b.getF32Type(), sizes), perRow);
  return {e.convert(loop.getResult(0), op.getType().getElementType())};
}

void llmc::populateExpertLowerings(RewritePatternSet &patterns) {
  addLowering<MoeRouteOp, lowerMoeRoute>(patterns);
  addLowering<MoeMlpOp, lowerMoeMlp>(patterns);
}
