// Interpreter of the scalar control of a role; see the header.
#include "passes/tile/Interpreter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

#include <deque>

using namespace mlir;
using namespace llmc::tile;

namespace {

/// A held stage: the how-manieth acquisition of which ring.
struct Held {
  Value ring;
  int64_t turn;
  bool operator==(const Held &o) const {
    return ring == o.ring && turn == o.turn;
  }
};

class Interpreter {
public:
  Interpreter(Operation *scope, int64_t probe, int64_t maxEvents)
      : probe(probe), maxEvents(maxEvents) {
    trace.scope = scope;
  }

  FailureOr<RoleTrace> run() {
    Operation *scope = trace.scope;
    if (auto kernel = scope->getParentOfType<KernelOp>())
      for (Operation &op : kernel.getBody().front()) {
        if (isa<RoleOp>(op))
          break;
        if (failed(visit(&op)))
          return failure();
      }
    if (failed(block(scope->getRegion(0).front())))
      return failure();
    if (!trace.truncated)
      for (auto &[ring, stages] : held)
        if (!stages.empty())
          return emitError(ring.getLoc(), "tile.ring ")
                 << stages.size() << " stage(s) are still held at the end of "
                 << "the role that consumes them: a tile.release is missing";
    return trace;
  }

private:
  LogicalResult block(Block &body) {
    for (Operation &op : body.without_terminator()) {
      if (failed(visit(&op)))
        return failure();
      if (trace.truncated)
        break;
    }
    return success();
  }

  int64_t get(Value value) const {
    auto it = integers.find(value);
    return it == integers.end() ? probe : it->second;
  }

  /// Carries numbers and the origin of tiles from one value to another.
  void bind(Value to, Value from) {
    if (to.getType().isIntOrIndex())
      integers[to] = get(from);
    auto it = origins.find(from);
    if (it != origins.end())
      origins[to] = it->second;
    else
      origins.erase(to);
  }
  template <typename To, typename From> void bindAll(To to, From from) {
    SmallVector<std::pair<int64_t, std::optional<Held>>> values;
    for (Value v : from) {
      auto it = origins.find(v);
      values.push_back({get(v), it == origins.end()
                                    ? std::optional<Held>()
                                    : std::optional<Held>(it->second)});
    }
    for (auto [target, value] : llvm::zip(to, values)) {
      if (target.getType().isIntOrIndex())
        integers[target] = value.first;
      if (value.second)
        origins[target] = *value.second;
      else
        origins.erase(target);
    }
  }

  LogicalResult event(RingEvent::Kind kind, Value ring, Operation *op) {
    trace.events.push_back({kind, ring, op});
    trace.truncated |= int64_t(trace.events.size()) >= maxEvents;
    return success();
  }

  //===--- rings ---------------------------------------------------------===//

  void acquire(Value ring, ValueRange tiles) {
    Held stage{ring, turns[ring]++};
    held[ring].push_back(stage);
    for (Value tile : tiles)
      origins[tile] = stage;
  }

  LogicalResult release(Operation *op, Value ring, int64_t keep) {
    auto &stages = held[ring];
    while (int64_t(stages.size()) > keep) {
      Held stage = stages.front();
      for (auto &batch : inFlight)
        if (llvm::is_contained(batch.second, stage)) {
          InFlightDiagnostic error = op->emitOpError(
              "releases a stage that a multiply in flight may still read; "
              "wait for it first, or keep one more stage");
          error.attachNote(batch.first->getLoc()) << "the multiply";
          return failure();
        }
      stages.pop_front();
      if (failed(event(RingEvent::Release, ring, op)))
        return failure();
    }
    return success();
  }

  LogicalResult checkHeld(Operation *op, Value tile) {
    auto it = origins.find(tile);
    if (it == origins.end() ||
        llvm::is_contained(held[it->second.ring], it->second))
      return success();
    return op->emitOpError("uses a stage of a ring after its release");
  }

  //===--- ops -----------------------------------------------------------===//

  LogicalResult visit(Operation *op) {
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](ProduceOp p) {
          return event(p.getPart() == ProducePart::Resume ? RingEvent::Resume
                                                          : RingEvent::Fill,
                       p.getRing(), p);
        })
        .Case([&](AcquireOp a) {
          acquire(a.getRing(), a.getTiles());
          return event(RingEvent::Use, a.getRing(), a);
        })
        .Case([&](ConsumeOp c) -> LogicalResult {
          acquire(c.getRing(), c.getBody().getArguments());
          if (failed(event(RingEvent::Use, c.getRing(), c)) ||
              failed(block(c.getBody().front())))
            return failure();
          bindAll(c.getResults(),
                  c.getBody().front().getTerminator()->getOperands());
          return trace.truncated ? success()
                                 : release(c, c.getRing(), c.getKeep());
        })
        .Case([&](ReleaseOp r) { return release(r, r.getRing(), r.getKeep()); })
        .Case([&](WgmmaOp w) -> LogicalResult {
          SmallVector<Held> reads;
          for (Value tile : {w.getA(), Value(w.getB())}) {
            if (failed(checkHeld(w, tile)))
              return failure();
            auto it = origins.find(tile);
            if (it != origins.end())
              reads.push_back(it->second);
          }
          inFlight.push_back({w, reads});
          return success();
        })
        .Case([&](WgmmaWaitOp w) -> LogicalResult {
          while (inFlight.size() > w.getPending())
            inFlight.pop_front();
          return success();
        })
        .Case<SliceOp, WarpgroupSliceOp>([&](auto slice) -> LogicalResult {
          bind(slice.getResult(), slice.getTile());
          return checkHeld(slice, slice.getTile());
        })
        .Case<scf::ForOp>([&](auto loop) { return visitFor(loop); })
        .Case<scf::IfOp>([&](auto branch) { return visitIf(branch); })
        .Default([&](Operation *other) -> LogicalResult {
          WalkResult rings = other->walk([](Operation *inner) {
            return isa<ProduceOp, ConsumeOp, AcquireOp, ReleaseOp>(inner)
                       ? WalkResult::interrupt()
                       : WalkResult::advance();
          });
          if (rings.wasInterrupted())
            return other->emitOpError(
                "holds ring ops; only scf.for and scf.if may");
          visitScalar(other);
          return success();
        });
  }

  LogicalResult visitFor(scf::ForOp loop) {
    int64_t upper = get(loop.getUpperBound()), step = get(loop.getStep());
    bindAll(loop.getRegionIterArgs(), loop.getInitArgs());
    for (int64_t i = get(loop.getLowerBound()); step > 0 && i < upper;
         i += step) {
      integers[loop.getInductionVar()] = i;
      size_t before = trace.events.size();
      if (failed(block(*loop.getBody())))
        return failure();
      if (trace.truncated)
        return success();
      bindAll(loop.getRegionIterArgs(),
              loop.getBody()->getTerminator()->getOperands());
      // A loop that touches no ring tells nothing more.
      if (trace.events.size() == before && ++quiet > 100000)
        break;
    }
    bindAll(loop.getResults(), loop.getRegionIterArgs());
    return success();
  }

  LogicalResult visitIf(scf::IfOp branch) {
    bool taken = get(branch.getCondition()) != 0;
    Region &region = taken ? branch.getThenRegion() : branch.getElseRegion();
    if (region.empty())
      return success();
    if (failed(block(region.front())))
      return failure();
    if (!trace.truncated)
      bindAll(branch.getResults(),
              region.front().getTerminator()->getOperands());
    return success();
  }

  void visitScalar(Operation *op) {
    if (auto raster = dyn_cast<RasterOp>(op)) {
      int64_t rows = std::max<int64_t>(1, get(raster.getRows()));
      integers[raster.getRow()] = get(raster.getIndex()) % rows;
      integers[raster.getColumn()] = get(raster.getIndex()) / rows;
      return;
    }
    if (isa<ProgramIdOp, ClusterRankOp, WarpgroupIndexOp, WarpIndexOp,
            ThreadIndexOp>(op)) {
      integers[op->getResult(0)] = 0;
      return;
    }
    if (auto uniform = dyn_cast<UniformOp>(op)) {
      integers[uniform.getResult()] = get(uniform.getValue());
      return;
    }
    if (isa<NumProgramsOp>(op)) {
      integers[op->getResult(0)] = 1;
      return;
    }
    // Everything else that folds on constants: arith.
    if (op->getNumResults() != 1 || !op->getResult(0).getType().isIntOrIndex())
      return;
    SmallVector<Attribute> constants;
    for (Value operand : op->getOperands()) {
      Type type = operand.getType();
      if (!type.isIntOrIndex())
        return;
      unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
      constants.push_back(IntegerAttr::get(
          type, APInt(width, uint64_t(get(operand)), false, true)));
    }
    SmallVector<OpFoldResult> folded;
    if (failed(op->fold(constants, folded)) || folded.empty())
      return;
    if (auto attr = dyn_cast_if_present<Attribute>(folded.front())) {
      if (auto integer = dyn_cast<IntegerAttr>(attr))
        integers[op->getResult(0)] = integer.getType().isInteger(1)
                                         ? integer.getValue().getZExtValue()
                                         : integer.getValue().getSExtValue();
    } else {
      integers[op->getResult(0)] = get(cast<Value>(folded.front()));
    }
  }

  int64_t probe, maxEvents, quiet = 0;
  RoleTrace trace;
  llvm::DenseMap<Value, int64_t> integers, turns;
  llvm::DenseMap<Value, Held> origins;
  llvm::DenseMap<Value, std::deque<Held>> held;
  std::deque<std::pair<Operation *, SmallVector<Held>>> inFlight;
};

} // namespace

FailureOr<RoleTrace> llmc::tile::traceRole(Operation *scope, int64_t probe,
                                           int64_t maxEvents) {
  return Interpreter(scope, probe, maxEvents).run();
}
