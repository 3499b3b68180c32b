// tile-assign-stage-phase: where in its ring each role stands.
#include "passes/tile/Passes.h"

#include "dialects/tile/TileDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"

namespace llmc {
#define GEN_PASS_DEF_TILEASSIGNSTAGEPHASE
#include "passes/tile/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc::tile;

namespace {

/// A position in a ring: null until the role first uses it.
struct Cursor {
  Value stage, phase;
};

/// Where a role stands in one ring.
struct RingState {
  Cursor produce, resume, acquire;
  SmallVector<Value> held; ///< stages acquired and not yet released, in order

  SmallVector<Value> values() const {
    SmallVector<Value> all;
    for (const Cursor &c : {produce, resume, acquire})
      if (c.stage)
        all.append({c.stage, c.phase});
    all.append(held);
    return all;
  }
  /// The same state with other values.
  RingState with(ValueRange values) const {
    RingState next = *this;
    unsigned i = 0;
    for (Cursor *c : {&next.produce, &next.resume, &next.acquire})
      if (c->stage) {
        c->stage = values[i++];
        c->phase = values[i++];
      }
    for (Value &stage : next.held)
      stage = values[i++];
    return next;
  }
};

using State = llvm::MapVector<Value, RingState>;

Value ringOf(Operation *op) {
  return TypeSwitch<Operation *, Value>(op)
      .Case<ProduceOp, ConsumeOp, AcquireOp, ReleaseOp>(
          [](auto ringOp) { return ringOp.getRing(); })
      .Default(Value());
}

llvm::SetVector<Value> ringsIn(Operation *op) {
  llvm::SetVector<Value> rings;
  op->walk([&](Operation *inner) {
    if (Value ring = ringOf(inner))
      rings.insert(ring);
  });
  return rings;
}

/// Assigns stages in one role (or a kernel without roles).
class Assigner {
public:
  Assigner(Operation *scope) : rewriter(scope->getContext()), scope(scope) {}

  LogicalResult run(Block &body) {
    expandConsumes();
    State state;
    start(body, state);
    if (failed(walk(body, state)))
      return failure();
    for (auto &[ring, s] : state)
      if (!s.held.empty())
        return emitError(ring.getLoc(), "tile.ring ")
               << s.held.size() << " stage(s) are still held at the end of the "
               << "role that consumes them: a tile.release is missing";
    return success();
  }

private:
  /// tile.consume -> tile.acquire, body, tile.release.
  void expandConsumes() {
    SmallVector<ConsumeOp> consumes;
    scope->walk([&](ConsumeOp op) { consumes.push_back(op); });
    for (ConsumeOp op : consumes) {
      rewriter.setInsertionPoint(op);
      auto acquire = AcquireOp::create(
          rewriter, op.getLoc(), op.getBody().getArgumentTypes(), op.getRing(),
          Value(), Value(), IntegerAttr());
      Operation *yield = op.getBody().front().getTerminator();
      rewriter.inlineBlockBefore(&op.getBody().front(), op, acquire.getTiles());
      SmallVector<Value> mapped(yield->getOperands());
      rewriter.eraseOp(yield);
      rewriter.setInsertionPoint(op);
      ReleaseOp::create(rewriter, op.getLoc(), op.getRing(), Value(),
                        op.getKeep());
      rewriter.replaceOp(op, mapped);
    }
  }

  /// First stage and phase of every ring the role uses.
  void start(Block &body, State &state) {
    rewriter.setInsertionPointToStart(&body);
    auto constant = [&](int64_t v) -> Value {
      return arith::ConstantIntOp::create(rewriter, scope->getLoc(), v, 32);
    };
    scope->walk([&](Operation *op) {
      if (!isa<ProduceOp, AcquireOp>(op))
        return;
      RingState &s = state[ringOf(op)];
      Cursor *cursor = &s.acquire;
      if (auto produce = dyn_cast<ProduceOp>(op))
        cursor =
            produce.getPart() == ProducePart::Resume ? &s.resume : &s.produce;
      if (!cursor->stage)
        *cursor = {constant(0), constant(isa<ProduceOp>(op) ? 1 : 0)};
    });
  }

  Cursor next(Location loc, Cursor at, int64_t stages) {
    auto constant = [&](int64_t v) -> Value {
      return arith::ConstantIntOp::create(rewriter, loc, v, 32);
    };
    Value one = constant(1);
    Value flipped = arith::XOrIOp::create(rewriter, loc, at.phase, one);
    if (stages == 1)
      return {at.stage, flipped};
    Value stage = arith::AddIOp::create(rewriter, loc, at.stage, one);
    Value wraps = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq,
                                        stage, constant(stages));
    return {arith::SelectOp::create(rewriter, loc, wraps, constant(0), stage),
            arith::SelectOp::create(rewriter, loc, wraps, flipped, at.phase)};
  }

  LogicalResult walk(Block &block, State &state) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      LogicalResult ok =
          TypeSwitch<Operation *, LogicalResult>(&op)
              .Case<ProduceOp, AcquireOp, ReleaseOp, scf::ForOp, scf::IfOp>(
                  [&](auto typed) { return visit(typed, state); })
              .Default([&](Operation *other) -> LogicalResult {
                if (other->getNumRegions() && !ringsIn(other).empty())
                  return other->emitOpError(
                      "holds ring ops; only scf.for and scf.if may");
                return success();
              });
      if (failed(ok))
        return failure();
    }
    return success();
  }

  LogicalResult visit(ProduceOp op, State &state) {
    RingState &s = state[op.getRing()];
    bool resume = op.getPart() == ProducePart::Resume;
    Cursor &cursor = resume ? s.resume : s.produce;
    op.getStageMutable().assign(cursor.stage);
    op.getPhaseMutable().assign(cursor.phase);
    rewriter.setInsertionPointAfter(op);
    cursor = next(op.getLoc(), cursor, op.getRing().getType().getStages());
    // A whole filling is also past what could be resumed.
    if (op.getPart() == ProducePart::Whole && s.resume.stage)
      s.resume = cursor;
    return success();
  }

  LogicalResult visit(AcquireOp op, State &state) {
    RingState &s = state[op.getRing()];
    int64_t stages = op.getRing().getType().getStages();
    op.getStageMutable().assign(s.acquire.stage);
    op.getPhaseMutable().assign(s.acquire.phase);
    s.held.push_back(s.acquire.stage);
    if (int64_t(s.held.size()) > stages)
      return op.emitOpError("expected at most ")
             << stages << " held stages, those of the ring, got "
             << s.held.size() << "; release one before";
    rewriter.setInsertionPointAfter(op);
    s.acquire = next(op.getLoc(), s.acquire, stages);
    return success();
  }

  LogicalResult visit(ReleaseOp op, State &state) {
    RingState &s = state[op.getRing()];
    rewriter.setInsertionPoint(op);
    while (s.held.size() > op.getKeep()) {
      ReleaseOp::create(rewriter, op.getLoc(), op.getRing(), s.held.front(), 0);
      s.held.erase(s.held.begin());
    }
    rewriter.eraseOp(op);
    return success();
  }

  LogicalResult visit(scf::ForOp op, State &state) {
    llvm::SetVector<Value> rings = ringsIn(op);
    if (rings.empty())
      return success();
    SmallVector<Value> inits(op.getInitArgs());
    unsigned own = inits.size();
    for (Value ring : rings)
      llvm::append_range(inits, state[ring].values());
    rewriter.setInsertionPoint(op);
    auto loop = scf::ForOp::create(rewriter, op.getLoc(), op.getLowerBound(),
                                   op.getUpperBound(), op.getStep(), inits);
    loop->setAttrs(op->getAttrs());
    if (!loop.getBody()->empty())
      rewriter.eraseOp(loop.getBody()->getTerminator());
    rewriter.mergeBlocks(op.getBody(), loop.getBody(),
                         loop.getBody()->getArguments().take_front(own + 1));
    State inside = bind(state, rings,
                        ValueRange(loop.getRegionIterArgs()).drop_front(own));
    if (failed(walk(*loop.getBody(), inside)))
      return failure();
    for (Value ring : rings)
      if (inside[ring].held.size() != state[ring].held.size())
        return loop.emitOpError("expected as many held stages of a ring after "
                                "an iteration as before it, ")
               << state[ring].held.size() << ", got "
               << inside[ring].held.size()
               << "; release as many as are acquired, or peel the first "
                  "iteration";
    appendYield(loop.getBody()->getTerminator(), inside, rings);
    rewriter.replaceOp(op, loop.getResults().take_front(own));
    state = bind(state, rings, loop.getResults().drop_front(own));
    return success();
  }

  LogicalResult visit(scf::IfOp op, State &state) {
    llvm::SetVector<Value> rings = ringsIn(op);
    if (rings.empty())
      return success();
    SmallVector<Type> types(op.getResultTypes());
    unsigned own = types.size();
    State thenState = state, elseState = state;
    rewriter.setInsertionPoint(op);
    // Types of the carried values are known only after the branches: walk
    // them in place, then move them.
    if (op.getElseRegion().empty()) {
      rewriter.createBlock(&op.getElseRegion());
      scf::YieldOp::create(rewriter, op.getLoc());
    }
    if (failed(walk(*op.thenBlock(), thenState)) ||
        failed(walk(*op.elseBlock(), elseState)))
      return failure();
    for (Value ring : rings) {
      if (thenState[ring].held.size() != elseState[ring].held.size())
        return op.emitOpError("expected as many held stages of a ring after "
                              "both branches, got ")
               << thenState[ring].held.size() << " and "
               << elseState[ring].held.size();
      types.append(thenState[ring].values().size(), rewriter.getI32Type());
    }
    appendYield(op.thenBlock()->getTerminator(), thenState, rings);
    appendYield(op.elseBlock()->getTerminator(), elseState, rings);
    rewriter.setInsertionPoint(op);
    auto branch = scf::IfOp::create(rewriter, op.getLoc(), types,
                                    op.getCondition(), false);
    branch.getThenRegion().takeBody(op.getThenRegion());
    branch.getElseRegion().takeBody(op.getElseRegion());
    rewriter.replaceOp(op, branch.getResults().take_front(own));
    state = bind(thenState, rings, branch.getResults().drop_front(own));
    return success();
  }

  State bind(const State &state, const llvm::SetVector<Value> &rings,
             ValueRange values) {
    State bound = state;
    for (Value ring : rings) {
      RingState &s = bound[ring];
      unsigned count = s.values().size();
      s = s.with(values.take_front(count));
      values = values.drop_front(count);
    }
    return bound;
  }

  void appendYield(Operation *yield, State &state,
                   const llvm::SetVector<Value> &rings) {
    SmallVector<Value> operands(yield->getOperands());
    for (Value ring : rings)
      llvm::append_range(operands, state[ring].values());
    yield->setOperands(operands);
  }

  IRRewriter rewriter;
  Operation *scope;
};

/// Bytes of the TMA loads in the body.
int64_t loadedBytes(ProduceOp op) {
  int64_t bytes = 0;
  op.walk(
      [&](TmaLoadOp load) { bytes += load.getTile().getType().getBytes(); });
  return bytes;
}

/// Arrive counts and bytes of one ring.
LogicalResult countArrivals(RingOp ring) {
  int64_t resumed = 0;
  llvm::SetVector<Operation *> producers, consumers;
  auto scopeOf = [](Operation *op) -> Operation * {
    if (auto role = op->getParentOfType<RoleOp>())
      return role;
    return op->getParentOfType<KernelOp>();
  };
  for (Operation *user : ring->getUsers()) {
    if (auto produce = dyn_cast<ProduceOp>(user)) {
      producers.insert(scopeOf(produce));
      if (produce.getPart() == ProducePart::Resume)
        resumed = loadedBytes(produce);
    } else {
      consumers.insert(scopeOf(user));
    }
  }
  if (producers.size() != 1 || consumers.empty())
    return ring.emitOpError("expected one producing role and one consuming "
                            "role or more, got ")
           << producers.size() << " and " << consumers.size();
  Builder builder(ring.getContext());
  for (Operation *user : ring->getUsers())
    if (auto produce = dyn_cast<ProduceOp>(user))
      if (produce.getPart() != ProducePart::Resume)
        produce.setBytes(
            loadedBytes(produce) +
            (produce.getPart() == ProducePart::Begin ? resumed : 0));
  int64_t arrivals = 0;
  for (Operation *scope : consumers) {
    auto role = dyn_cast<RoleOp>(scope);
    if (role)
      arrivals += role.getElected() ? 1 : role.getWarps();
    else
      arrivals += cast<KernelOp>(scope).getThreads() / 32;
  }
  ring.setFullArrivals(1);
  ring.setEmptyArrivals(arrivals);
  return success();
}

struct AssignStagePhase
    : llmc::impl::TileAssignStagePhaseBase<AssignStagePhase> {
  void runOnOperation() override {
    SmallVector<KernelOp> kernels;
    getOperation()->walk([&](KernelOp kernel) { kernels.push_back(kernel); });
    for (KernelOp kernel : kernels) {
      for (RingOp ring : kernel.getBody().getOps<RingOp>())
        if (failed(countArrivals(ring)))
          return signalPassFailure();
      SmallVector<RoleOp> roles(kernel.getBody().getOps<RoleOp>());
      for (RoleOp role : roles)
        if (failed(Assigner(role).run(role.getBody().front())))
          return signalPassFailure();
      // Without roles the block fills the rings that it consumes.
      if (roles.empty() &&
          failed(Assigner(kernel).run(kernel.getBody().front())))
        return signalPassFailure();
    }
  }
};

} // namespace
