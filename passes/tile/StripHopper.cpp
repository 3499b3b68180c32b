// tile-strip-hopper: what GPUs before sm_90 neither have nor need.
#include "passes/tile/Passes.h"

#include "dialects/tile/TileDialect.h"

namespace llmc {
#define GEN_PASS_DEF_TILESTRIPHOPPER
#include "passes/tile/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc::tile;

namespace {
struct StripHopper : llmc::impl::TileStripHopperBase<StripHopper> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (isa<PdlWaitOp, PdlLaunchOp, ProxyFenceOp>(op))
        op->erase();
      else if (auto kernel = dyn_cast<KernelOp>(op))
        kernel.setPdl(false);
    });
  }
};
} // namespace
