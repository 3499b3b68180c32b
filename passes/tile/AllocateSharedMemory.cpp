// tile-allocate-shared-memory: offsets of rings, tiles and scratch.
#include "passes/tile/Passes.h"

#include "dialects/tile/TileDialect.h"

#include "mlir/IR/Builders.h"

namespace llmc {
#define GEN_PASS_DEF_TILEALLOCATESHAREDMEMORY
#include "passes/tile/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc::tile;

/// Bytes of scratch of one reduction: a row of 32 slots per value.
static int64_t scratchBytes(ReduceOp op) {
  return op.getScope() == Scope::Warp ? 0 : 128 * op.getValues().size();
}

/// Bytes that slices of the ring's tiles read past the end of the ring.
static int64_t overread(RingOp ring) {
  int64_t most = 0;
  ring->getParentOfType<KernelOp>().walk([&](WarpgroupSliceOp op) {
    auto role = op->getParentOfType<RoleOp>();
    SmemType from = op.getTile().getType();
    if (!role || op.getClamped() ||
        !llvm::is_contained(ring.getRing().getType().getSlots(), from))
      return;
    int64_t groups = llvm::divideCeil(role.getWarps(), 4);
    int64_t rows =
        (groups - 1) * op.getStep() + op.getResult().getType().getShape()[0];
    most = std::max(most, (rows - from.getSlabRows()) * from.getSwizzle());
  });
  return most;
}

namespace {
struct AllocateSharedMemory
    : llmc::impl::TileAllocateSharedMemoryBase<AllocateSharedMemory> {
  using TileAllocateSharedMemoryBase::TileAllocateSharedMemoryBase;

  struct Allocation {
    Operation *op;
    std::string what;
    int64_t bytes, alignment;
  };

  LogicalResult collect(KernelOp kernel, SmallVectorImpl<Allocation> &all) {
    auto name = [](auto type) {
      std::string text;
      llvm::raw_string_ostream(text) << type;
      return text;
    };
    int64_t barriers = kernel.getBody().getOps<RoleOp>().empty() ? 0 : 16;
    for (RingOp ring : kernel.getBody().getOps<RingOp>()) {
      RingType type = ring.getRing().getType();
      all.push_back({ring, "ring " + name(type),
                     type.getStages() * (type.getStageBytes() + barriers),
                     1024});
    }
    LogicalResult ok = success();
    kernel.walk([&](SharedOp shared) {
      SmemType type = shared.getTile().getType();
      int64_t copies = shared.getBuffers();
      int64_t bytes = type.getBytes();
      if (shared.getPerWarpgroup() || copies > 1)
        bytes = llvm::alignTo(bytes, 1024);
      if (shared.getPerWarpgroup()) {
        int64_t groups = 0;
        for (Operation *user : shared->getUsers()) {
          auto role = user->getParentOfType<RoleOp>();
          int64_t warps = role ? role.getWarps() : kernel.getThreads() / 32;
          groups = std::max<int64_t>(groups, llvm::divideCeil(warps, 4));
        }
        copies *= groups;
      }
      bool aligned = type.getSwizzle() || shared.getPerWarpgroup();
      all.push_back({shared,
                     "tile " + name(type) + " x " + std::to_string(copies),
                     bytes * copies, aligned ? 1024 : 16});
    });
    kernel.walk([&](ReduceOp reduce) {
      if (int64_t bytes = scratchBytes(reduce))
        all.push_back({reduce, "scratch of a reduction", bytes, 16});
    });
    kernel.walk([&](ClusterReduceOp reduce) {
      auto role = reduce->getParentOfType<RoleOp>();
      int64_t warps = role ? role.getWarps() : kernel.getThreads() / 32;
      FragType half = reduce.getResult().getType();
      all.push_back({reduce, "what the other block of the cluster sends",
                     warps * 32 * half.getThreadElements() * 4, 16});
    });
    return ok;
  }

  void runOnOperation() override {
    WalkResult result = getOperation()->walk([&](KernelOp kernel) {
      SmallVector<Allocation> all;
      if (failed(collect(kernel, all)))
        return WalkResult::interrupt();
      // Most aligned first, so that no gaps arise.
      llvm::stable_sort(all, [](const Allocation &a, const Allocation &b) {
        return a.alignment > b.alignment;
      });
      Builder builder(kernel.getContext());
      int64_t end = 0, reach = 0;
      for (const Allocation &item : all) {
        int64_t offset = llvm::alignTo(end, item.alignment);
        item.op->setAttr("offset", builder.getI32IntegerAttr(offset));
        end = offset + item.bytes;
        if (auto ring = dyn_cast<RingOp>(item.op))
          reach = std::max(reach, end + overread(ring));
      }
      end = std::max(end, reach);
      if (end > maxBytes) {
        InFlightDiagnostic error =
            kernel.emitOpError("expected at most ")
            << maxBytes.getValue()
            << " bytes of shared memory, those of a block, got " << end;
        for (const Allocation &item : all)
          error.attachNote(item.op->getLoc())
              << item.bytes << " bytes: " << item.what;
        return WalkResult::interrupt();
      }
      kernel.setSharedMemory(end);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
