#include "passes/host/Entry.h"
#include "passes/host/LinearShape.h"
#include "passes/host/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_HOSTCHOOSELAYOUTS
#include "passes/host/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

// Does the panel kernel multiply by this operand?
static bool isPanelWeight(KernelOp kernel, unsigned operand, int64_t rows) {
  // Two vectors a panel, whatever the target.
  auto linear = LinearShape::of(kernel, rows, rows / 2);
  return linear && linear->linear.getWeight() == kernel.getArgument(operand);
}

namespace {
struct HostChooseLayouts
    : llmc::impl::HostChooseLayoutsBase<HostChooseLayouts> {
  using Base::Base;

  void runOnOperation() override {
    auto layout = PanelLayoutAttr::get(&getContext(), rows, /*group=*/1);
    SymbolTable symbols(getOperation());

    auto forEachWeight = [&](auto visit) {
      getOperation().walk([&](LaunchOp launch) {
        auto kernel = symbols.lookup<KernelOp>(launch.getKernel());
        for (auto [i, operand] : llvm::enumerate(launch.getOperands()))
          if (auto weight = operand.template getDefiningOp<WeightOp>())
            visit(launch, kernel, i,
                  symbols.lookup<ParameterOp>(weight.getName()));
      });
    };
    forEachWeight(
        [&](LaunchOp, KernelOp kernel, unsigned i, ParameterOp parameter) {
          if (isPanelWeight(kernel, i, rows))
            parameter.setLayoutAttr(layout);
        });
    // Whoever else reads the parameter reads panels too.
    bool failed = false;
    forEachWeight([&](LaunchOp launch, KernelOp kernel, unsigned i,
                      ParameterOp parameter) {
      Attribute chosen = parameter.getLayoutAttr();
      Attribute known = kernel.getArgAttr(i, kLayoutAttr);
      if (known && known != chosen) {
        launch.emitError()
            << "reads @" << parameter.getSymName()
            << ", whose layout differs from that of the kernel's other weights";
        failed = true;
      }
      if (chosen)
        kernel.setArgAttr(i, kLayoutAttr, chosen);
    });
    if (failed)
      signalPassFailure();
  }
};
} // namespace
