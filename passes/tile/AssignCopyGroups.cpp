// tile-assign-copy-groups: what a block that fills its own rings waits for.
#include "passes/tile/Passes.h"

#include "dialects/tile/TileDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace llmc {
#define GEN_PASS_DEF_TILEASSIGNCOPYGROUPS
#include "passes/tile/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc::tile;

namespace {

/// The stages of one ring, in the order in which they turn.
struct Stages {
  int64_t clean = 0; ///< free, and all threads know it
  int64_t dirty = 0; ///< released, though some threads may still read them
  int64_t here = 0;  ///< filled, waited for and not yet acquired
  int64_t held = 0;  ///< acquired
};

/// Where the block stands between two ops. Every thread makes every group of
/// copies, so their number is the same for all.
struct State {
  llvm::MapVector<Value, Stages> rings;
  SmallVector<Value> flying; ///< the ring of each group that may be on its way

  /// All threads meet: what was released is free.
  void meet() {
    for (auto &[ring, stages] : rings) {
      stages.clean += stages.dirty;
      stages.dirty = 0;
    }
  }
  /// What holds whichever way control came: nobody knows a stage to be free.
  void forget() {
    for (auto &[ring, stages] : rings) {
      stages.dirty += stages.clean;
      stages.clean = 0;
    }
  }
  bool sameGroups(const State &other) const {
    if (flying != other.flying)
      return false;
    for (auto [mine, its] : llvm::zip(rings, other.rings))
      if (mine.second.here != its.second.here ||
          mine.second.held != its.second.held)
        return false;
    return true;
  }
};

class GroupCounter {
public:
  LogicalResult run(KernelOp kernel) {
    State state;
    for (RingOp ring : kernel.getBody().getOps<RingOp>()) {
      state.rings[ring.getRing()].clean = ring.getRing().getType().getStages();
      for (Operation *user : ring->getUsers())
        if (auto produce = dyn_cast<ProduceOp>(user))
          if (failed(verifyFilling(produce)))
            return failure();
    }
    return walk(kernel.getBody().front(), state);
  }

private:
  LogicalResult verifyFilling(ProduceOp op) {
    if (op.getPart() != ProducePart::Whole)
      return op.emitOpError("expected whole fillings in a kernel without "
                            "roles");
    WalkResult loads = op.walk([](TmaLoadOp load) {
      load.emitOpError("expected in a role: the threads of a kernel without "
                       "roles copy with tile.copy_async");
      return WalkResult::interrupt();
    });
    return failure(loads.wasInterrupted());
  }

  LogicalResult walk(Block &block, State &state) {
    for (Operation &op : block) {
      LogicalResult ok =
          TypeSwitch<Operation *, LogicalResult>(&op)
              .Case<ProduceOp, AcquireOp, ReleaseOp, scf::ForOp, scf::IfOp>(
                  [&](auto typed) { return visit(typed, state); })
              .Case([&](BarrierOp barrier) {
                if (barrier.getScope() == Scope::Block)
                  state.meet();
                return success();
              })
              .Default([](Operation *) { return success(); });
      if (failed(ok))
        return failure();
    }
    return success();
  }

  LogicalResult visit(ProduceOp op, State &state) {
    Stages &stages = state.rings[op.getRing()];
    if (!stages.clean && !stages.dirty)
      return op.emitOpError("expected a free stage, got ")
             << stages.held << " held and "
             << op.getRing().getType().getStages() - stages.held
             << " filled; release one before";
    if (!stages.clean) {
      op.setMeet(true);
      state.meet();
    }
    --stages.clean;
    state.flying.push_back(op.getRing());
    return success();
  }

  LogicalResult visit(AcquireOp op, State &state) {
    Stages &stages = state.rings[op.getRing()];
    if (stages.here) {
      --stages.here;
    } else {
      auto *first = llvm::find(state.flying, op.getRing());
      if (first == state.flying.end())
        return op.emitOpError("expected a stage that a tile.produce filled "
                              "before, got none");
      // Groups end in order: those before this one are here with it.
      for (Value ring : ArrayRef(state.flying.begin(), first))
        ++state.rings[ring].here;
      state.flying.erase(state.flying.begin(), first + 1);
      op.setPending(state.flying.size());
      state.meet();
    }
    ++stages.held;
    return success();
  }

  LogicalResult visit(ReleaseOp op, State &state) {
    Stages &stages = state.rings[op.getRing()];
    --stages.held;
    ++stages.dirty;
    return success();
  }

  LogicalResult visit(scf::ForOp op, State &state) {
    if (!usesRings(op))
      return success();
    state.forget();
    State inside = state;
    if (failed(walk(*op.getBody(), inside)))
      return failure();
    if (!inside.sameGroups(state))
      return op.emitOpError("expected the same fillings on their way after an "
                            "iteration as before it, got ")
             << inside.flying.size() << " and " << state.flying.size()
             << "; fill as many stages as are acquired, in one order";
    return success();
  }

  LogicalResult visit(scf::IfOp op, State &state) {
    if (!usesRings(op))
      return success();
    State other = state;
    if (failed(walk(*op.thenBlock(), state)) ||
        (op.elseBlock() && failed(walk(*op.elseBlock(), other))))
      return failure();
    if (!state.sameGroups(other))
      return op.emitOpError("expected the same fillings on their way after "
                            "both branches, got ")
             << state.flying.size() << " and " << other.flying.size();
    state.forget();
    return success();
  }

  static bool usesRings(Operation *op) {
    return op
        ->walk([](Operation *inner) {
          return isa<ProduceOp, AcquireOp, ReleaseOp>(inner)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }
};

struct AssignCopyGroups
    : llmc::impl::TileAssignCopyGroupsBase<AssignCopyGroups> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([&](KernelOp kernel) {
      if (!kernel.getBody().getOps<RoleOp>().empty())
        return WalkResult::advance();
      return failed(GroupCounter().run(kernel)) ? WalkResult::interrupt()
                                                : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
