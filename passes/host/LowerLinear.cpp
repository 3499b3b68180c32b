#include "passes/host/Dialects.h"
#include "passes/host/LinearEpilogue.h"
#include "passes/host/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_HOSTLOWERLINEAR
#include "passes/host/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

// Rows of a tile: enough that a panel is worth widening, few enough that they
// stay in the second-level cache.
static constexpr int64_t kRowsPerTile = 48;

// Hardware does not prefetch across pages: a panel is asked for one page ahead.
static constexpr int64_t kPrefetchBytes = 4096;

// The input as [rows, K]: the argument, whatever reshapes are in between.
static Value inputOf(OpBuilder &b, Entry &entry, LinearOp linear) {
  Value value = linear.getInput();
  while (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>())
    value = collapse.getSrc();
  Value memref = entry.operandOf(value);
  int64_t rank = cast<MemRefType>(memref.getType()).getRank();
  if (rank == 2)
    return memref;
  SmallVector<ReassociationIndices> groups{
      {0}, llvm::to_vector(llvm::seq<int64_t>(1, rank))};
  return memref::CollapseShapeOp::create(b, linear.getLoc(), memref, groups);
}

namespace {
struct HostLowerLinear : llmc::impl::HostLowerLinearBase<HostLowerLinear> {
  using Base::Base;

  void runOnOperation() override {
    VectorShape vectors = VectorShape::ofBits(vectorBits);
    for (KernelOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
      auto found =
          llvm::find_if(kernel.getBody().front(), llvm::IsaPred<LinearOp>);
      if (found == kernel.getBody().front().end())
        continue;
      auto weight = dyn_cast<BlockArgument>(cast<LinearOp>(*found).getWeight());
      PanelLayoutAttr layout =
          weight ? layoutOf(kernel, weight.getArgNumber()) : nullptr;
      if (!layout)
        continue;
      auto linear = LinearShape::of(kernel, layout.getRows(), vectors.lanes);
      if (!linear || layout.getGroup() != 1 ||
          layout.getRows() % vectors.lanes) {
        kernel.emitError()
            << "stores its weight as " << layout
            << ", which its body or the target's vectors do not allow";
        return signalPassFailure();
      }
      lower(kernel, *linear, vectors);
      kernel.erase();
    }
  }

private:
  static void lower(KernelOp kernel, const LinearShape &linear,
                    VectorShape vectors) {
    OpBuilder b(kernel);
    Location loc = kernel.getLoc();
    Entry entry(b, kernel);
    Entry::Tile tile = entry.tile(kRowsPerTile, linear.columnTiles());
    LinearOp op = linear.linear;
    Value input = inputOf(b, entry, op);
    Value panels = memref::CollapseShapeOp::create(
        b, loc, entry.operandOf(op.getWeight()),
        ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}});
    SmallVector<Value> tilePanels = linear.panels(b, loc, tile.column);
    LinearShape::Columns columns = linear.columns(b, loc, tile.column);

    SmallVector<int64_t> blocks{vectors.accumulators /
                                (linear.panelRows / vectors.lanes)};
    while (blocks.back() > 1)
      blocks.push_back(llvm::bit_floor(uint64_t(blocks.back() - 1)));
    forRowBlocks(b, loc, tile.rowBegin, tile.rowEnd, blocks,
                 [&](Value row, int64_t numRows) {
                   emitRows(b, kernel, entry, linear, columns, input, panels,
                            tilePanels, row, numRows, vectors);
                 });
    func::ReturnOp::create(b, loc);
  }

  static void emitRows(OpBuilder &b, KernelOp kernel, Entry &entry,
                       const LinearShape &linear,
                       const LinearShape::Columns &columns, Value input,
                       Value panels, ArrayRef<Value> tilePanels, Value row,
                       int64_t numRows, VectorShape vectors) {
    Location loc = kernel.getLoc();
    Sums sums(numRows);
    for (Value panel : tilePanels) {
      Product product{input, row, numRows, panels, {panel}, {}, {}};
      for (int64_t column = 0; column < linear.panelRows;
           column += vectors.lanes)
        product.columns.push_back(
            arith::ConstantIndexOp::create(b, loc, column));
      product.depth = arith::ConstantIndexOp::create(b, loc, linear.depth());
      product.maxUnroll = linear.depth();
      auto type = cast<MemRefType>(panels.getType());
      product.prefetchDistance =
          kPrefetchBytes * 8 /
          (linear.panelRows * type.getElementTypeBitWidth());
      for (auto [sum, part] :
           llvm::zip_equal(sums, emitProduct(b, loc, product, vectors)))
        llvm::append_range(sum, part);
    }
    for (int64_t r = 0; r < numRows; ++r) {
      Value at = arith::AddIOp::create(
          b, loc, row, arith::ConstantIndexOp::create(b, loc, r));
      LinearEpilogue epilogue(b, entry, linear, columns, at, sums[r], vectors);
      for (auto [i, value] : llvm::enumerate(
               kernel.getBody().front().getTerminator()->getOperands()))
        epilogue.store(value, entry.result(i));
    }
  }
};
} // namespace
