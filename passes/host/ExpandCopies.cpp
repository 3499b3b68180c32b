#include "passes/host/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace llmc {
#define GEN_PASS_DEF_HOSTEXPANDCOPIES
#include "passes/host/Passes.h.inc"
} // namespace llmc

using namespace mlir;

namespace {
struct HostExpandCopies : llmc::impl::HostExpandCopiesBase<HostExpandCopies> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([](memref::CopyOp copy) {
      OpBuilder builder(copy);
      linalg::makeMemRefCopyOp(builder, copy.getLoc(), copy.getSource(),
                               copy.getTarget());
      copy.erase();
    });
  }
};
} // namespace
