// tile-verify-protocol: runs the roles of a kernel against each other.
#include "passes/tile/Interpreter.h"
#include "passes/tile/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_TILEVERIFYPROTOCOL
#include "passes/tile/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc::tile;

namespace {

/// Counters of one ring while the roles run.
struct RingCounters {
  int64_t filled = 0;  ///< stages armed
  int64_t resumed = 0; ///< of those begun in parts, how many are complete
  bool split = false;  ///< whether some fillings come in two parts
  llvm::DenseMap<Operation *, int64_t> used, released;
};

std::string nameOf(Operation *scope) {
  if (auto role = dyn_cast<RoleOp>(scope))
    return ("@" + role.getSymName()).str();
  return "the kernel";
}

class Simulation {
public:
  explicit Simulation(SmallVector<RoleTrace> traces)
      : traces(std::move(traces)), next(this->traces.size()) {
    for (RoleTrace &trace : this->traces)
      for (RingEvent &event : trace.events) {
        RingCounters &ring = rings[event.ring];
        ring.split |= event.kind == RingEvent::Resume;
        if (event.kind == RingEvent::Use)
          ring.released.try_emplace(trace.scope, 0);
      }
  }

  /// Runs every role until it must wait, over and over. Rings only count
  /// upwards, so another order would get no further.
  LogicalResult run(KernelOp kernel) {
    bool moved = true;
    while (moved) {
      moved = false;
      for (auto [i, trace] : llvm::enumerate(traces))
        while (next[i] < trace.events.size() && step(trace, next[i])) {
          ++next[i];
          moved = true;
        }
    }
    bool cut = llvm::any_of(traces, [](auto &t) { return t.truncated; });
    for (auto [i, trace] : llvm::enumerate(traces))
      if (next[i] < trace.events.size() && !cut)
        return stuck(kernel);
    if (!cut)
      for (auto &[ring, counters] : rings)
        for (auto &[scope, used] : counters.used)
          if (used != counters.filled)
            return emitError(ring.getLoc(), "expected role ")
                   << nameOf(scope) << " to use the " << counters.filled
                   << " stage(s) that are produced, got " << used << " use(s)";
    return success();
  }

private:
  bool step(RoleTrace &trace, size_t index) {
    RingEvent &event = trace.events[index];
    RingCounters &ring = rings[event.ring];
    int64_t stages = cast<RingType>(event.ring.getType()).getStages();
    switch (event.kind) {
    case RingEvent::Fill: {
      for (auto &[scope, released] : ring.released)
        if (ring.filled - released >= stages)
          return false;
      ++ring.filled;
      // A whole filling, once the begun ones are done, is complete at once.
      auto produce = cast<ProduceOp>(event.op);
      if (produce.getPart() == ProducePart::Whole)
        ++ring.resumed;
      return true;
    }
    case RingEvent::Resume:
      if (ring.resumed >= ring.filled)
        return false;
      ++ring.resumed;
      return true;
    case RingEvent::Use: {
      int64_t &used = ring.used[trace.scope];
      if (used >= (ring.split ? ring.resumed : ring.filled))
        return false;
      ++used;
      return true;
    }
    case RingEvent::Release:
      ++ring.released[trace.scope];
      return true;
    }
    return false;
  }

  LogicalResult stuck(KernelOp kernel) {
    InFlightDiagnostic error = kernel.emitOpError(
        "deadlocks: no role can go on (sizes as the pass probes them)");
    for (auto [i, trace] : llvm::enumerate(traces)) {
      if (next[i] >= trace.events.size())
        continue;
      RingEvent &event = trace.events[next[i]];
      RingCounters &ring = rings[event.ring];
      StringRef waits = event.kind == RingEvent::Fill  ? "a free stage"
                        : event.kind == RingEvent::Use ? "a full stage"
                                                       : "a begun stage";
      Diagnostic &note = error.attachNote(event.op->getLoc());
      note << "role " << nameOf(trace.scope) << " waits for " << waits
           << " after " << ring.filled << " filling(s)";
      for (auto &[scope, released] : ring.released)
        note << ", " << released << " release(s) by " << nameOf(scope);
    }
    return failure();
  }

  SmallVector<RoleTrace> traces;
  SmallVector<size_t> next;
  llvm::MapVector<Value, RingCounters> rings;
};

struct VerifyProtocol : llmc::impl::TileVerifyProtocolBase<VerifyProtocol> {
  using TileVerifyProtocolBase::TileVerifyProtocolBase;

  LogicalResult verify(KernelOp kernel, int64_t probe) {
    SmallVector<RoleTrace> traces;
    for (RoleOp role : kernel.getBody().getOps<RoleOp>()) {
      FailureOr<RoleTrace> trace = traceRole(role, probe, maxEvents);
      if (failed(trace))
        return failure();
      traces.push_back(std::move(*trace));
    }
    for (RoleTrace &trace : traces)
      for (RingEvent &event : trace.events)
        if (event.kind == RingEvent::Fill &&
            failed(verifyFilling(cast<ProduceOp>(event.op))))
          return failure();
    return Simulation(std::move(traces)).run(kernel);
  }

  /// Under programmatic dependent launch the predecessor may still be running
  /// until pdl_wait. What TMA loads before it is the author's word.
  LogicalResult verifyWaits(KernelOp kernel) {
    if (!kernel.getPdl())
      return success();
    auto waits = [](Operation *scope) {
      return scope->walk([](PdlWaitOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
    };
    bool all = llvm::any_of(kernel.getBody().getOps<PdlWaitOp>(),
                            [](PdlWaitOp) { return true; });
    auto touches = [](Operation *op) {
      if (auto load = dyn_cast<LoadOp>(op)) {
        auto ptr = dyn_cast<PtrType>(load.getMemory().getType());
        return ptr && !ptr.getConstant();
      }
      if (auto store = dyn_cast<StoreOp>(op))
        return isa<PtrType>(store.getMemory().getType());
      return isa<AtomicOp, StoreTmaOp>(op);
    };
    WalkResult result = kernel.walk([&](Operation *op) {
      Operation *scope = op->getParentOfType<RoleOp>();
      if (all || !touches(op) || waits(scope ? scope : kernel))
        return WalkResult::advance();
      op->emitOpError("expected behind a tile.pdl_wait, as it touches memory "
                      "of other kernels; got none in ")
          << (scope ? "its role" : "the kernel");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  /// Every slot of the stage is filled, so that every turn brings the same
  /// bytes.
  LogicalResult verifyFilling(ProduceOp op) {
    if (!checked.insert(op).second || op.getPart() != ProducePart::Whole)
      return success();
    int64_t bytes = 0, want = 0;
    op.walk(
        [&](TmaLoadOp load) { bytes += load.getTile().getType().getBytes(); });
    for (SmemType slot : op.getRing().getType().getSlots())
      want += slot.getBytes();
    if (bytes == want)
      return success();
    return op.emitOpError("expected loads of the ")
           << want << " bytes of a stage, got " << bytes;
  }

  void runOnOperation() override {
    WalkResult result = getOperation()->walk([&](KernelOp kernel) {
      SmallVector<int64_t> values(probes.begin(), probes.end());
      if (values.empty())
        values = {9, 200};
      if (failed(verifyWaits(kernel)))
        return WalkResult::interrupt();
      for (int64_t probe : values)
        if (failed(verify(kernel, probe)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  llvm::DenseSet<Operation *> checked;
};

} // namespace
