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

// The layout in which the panel kernel reads this operand; null: rows.
static PanelLayoutAttr panelLayout(KernelOp kernel, unsigned operand,
                                   int64_t rows) {
  // Two vectors a panel, whatever the target.
  auto linear = LinearShape::of(kernel, rows, rows / 2);
  Value argument = kernel.getArgument(operand);
  if (!linear ||
      (argument != linear->weight() && argument != linear->weightScale() &&
       argument != linear->weightZero()))
    return nullptr;
  // The two codes of a byte are neighbours in k.
  bool isPair = getElementTypeOrSelf(argument.getType()).isInteger(4);
  return PanelLayoutAttr::get(kernel.getContext(), rows, isPair ? 2 : 1);
}

namespace {
struct HostChooseLayouts
    : llmc::impl::HostChooseLayoutsBase<HostChooseLayouts> {
  using Base::Base;

  void runOnOperation() override {
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
          if (PanelLayoutAttr layout = panelLayout(kernel, i, rows))
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
      if (!chosen && parameter.getTensorType().getElementType().isInteger(4)) {
        launch.emitError() << "reads the 4-bit codes @"
                           << parameter.getSymName()
                           << " in a kernel that cannot take them in panels; "
                              "exclude it from quantization";
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
