#include "passes/host/Dialects.h"
#include "passes/host/LinearEpilogue.h"
#include "passes/host/Passes.h"
#include "passes/linalg/Emitter.h"
#include "passes/linalg/Float8.h"

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
static Value inputOf(OpBuilder &b, Entry &entry, Operation *linear) {
  Value value = linear->getOperand(0);
  while (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>())
    value = collapse.getSrc();
  Value memref = entry.operandOf(value);
  int64_t rank = cast<MemRefType>(memref.getType()).getRank();
  if (rank == 2)
    return memref;
  SmallVector<ReassociationIndices> groups{
      {0}, llvm::to_vector(llvm::seq<int64_t>(1, rank))};
  return memref::CollapseShapeOp::create(b, linear->getLoc(), memref, groups);
}

// Panels as [panels, K, rows].
static Value collapsePanels(OpBuilder &b, Location loc, Value memref) {
  return memref::CollapseShapeOp::create(
      b, loc, memref, ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}});
}

// Codes of the weight in one stored element.
static int64_t perElement(const LinearShape &linear) {
  return getElementTypeOrSelf(linear.weight().getType()).isInteger(4) ? 2 : 1;
}

// A table of what each f8E4M3FN pattern means: one load beside the broadcast
// that a row's element needs anyway.
static Value float8Values(OpBuilder &b, func::FuncOp function) {
  constexpr llvm::StringLiteral name = "f8E4M3FN_values";
  auto module = function->getParentOfType<ModuleOp>();
  auto type = MemRefType::get({256}, b.getF32Type());
  if (!module.lookupSymbol(name)) {
    SmallVector<float> values;
    for (unsigned code = 0; code < 256; ++code) {
      APFloat value(APFloat::Float8E4M3FN(), APInt(8, code));
      bool inexact;
      value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                    &inexact);
      values.push_back(value.convertToFloat());
    }
    auto tensor = RankedTensorType::get({256}, b.getF32Type());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    memref::GlobalOp::create(b, function.getLoc(), name,
                             b.getStringAttr("private"), type,
                             DenseElementsAttr::get(tensor, ArrayRef(values)),
                             /*constant=*/true, /*alignment=*/IntegerAttr());
  }
  return memref::GetGlobalOp::create(b, function.getLoc(), type, name);
}

namespace {
// Memrefs of what a linear multiplies.
struct Operands {
  Value input, panels;
  Value scales;        // of a scaled_linear: [panels, groups, rows]
  Value zeros;         // the same of its zero points; may be null
  Value valuesOfInput; // of input codes
};

struct HostLowerLinear : llmc::impl::HostLowerLinearBase<HostLowerLinear> {
  using Base::Base;

  void runOnOperation() override {
    VectorShape vectors = VectorShape::ofBits(vectorBits);
    for (KernelOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
      auto found = llvm::find_if(kernel.getBody().front(),
                                 llvm::IsaPred<LinearOp, ScaledLinearOp>);
      if (found == kernel.getBody().front().end())
        continue;
      auto weight = dyn_cast<BlockArgument>(found->getOperand(1));
      PanelLayoutAttr layout =
          weight ? layoutOf(kernel, weight.getArgNumber()) : nullptr;
      if (!layout)
        continue;
      auto linear = LinearShape::of(kernel, layout.getRows(), vectors.lanes);
      if (!linear || layout.getGroup() != perElement(*linear) ||
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
    entry.function->setAttr(entry_attr::kOrderedSums, b.getUnitAttr());
    Entry::Tile tile = entry.tile(kRowsPerTile, linear.columnTiles());
    Operands operands;
    operands.input = inputOf(b, entry, linear.linear);
    operands.panels = collapsePanels(b, loc, entry.operandOf(linear.weight()));
    if (Value scale = linear.weightScale())
      operands.scales = collapsePanels(b, loc, entry.operandOf(scale));
    if (Value zero = linear.weightZero())
      operands.zeros = collapsePanels(b, loc, entry.operandOf(zero));
    if (isFloat8(getElementTypeOrSelf(linear.input().getType())))
      operands.valuesOfInput = float8Values(b, entry.function);
    SmallVector<Value> tilePanels = linear.panels(b, loc, tile.column);
    LinearShape::Columns columns = linear.columns(b, loc, tile.column);

    SmallVector<int64_t> blocks{vectors.accumulators /
                                (linear.panelRows / vectors.lanes)};
    while (blocks.back() > 1)
      blocks.push_back(llvm::bit_floor(uint64_t(blocks.back() - 1)));
    forRowBlocks(b, loc, tile.rowBegin, tile.rowEnd, blocks,
                 [&](Value row, int64_t numRows) {
                   emitRows(b, kernel, entry, linear, columns, operands,
                            tilePanels, row, numRows, vectors);
                 });
    func::ReturnOp::create(b, loc);
  }

  // The sums of one panel, by row and vector, with the weight's scales in them.
  static Sums emitPanel(OpBuilder &b, Location loc, const LinearShape &linear,
                        const Operands &operands, Value panel, Value row,
                        int64_t numRows, VectorShape vectors) {
    Product product{operands.input, row, numRows, operands.panels, {panel}};
    for (int64_t column = 0; column < linear.panelRows; column += vectors.lanes)
      product.columns.push_back(arith::ConstantIndexOp::create(b, loc, column));
    product.valuesOfA = operands.valuesOfInput;
    product.perElement = perElement(linear);
    auto stored = cast<MemRefType>(operands.panels.getType());
    product.prefetchDistance =
        kPrefetchBytes * 8 /
        (linear.panelRows * stored.getElementTypeBitWidth());
    Value depth = arith::ConstantIndexOp::create(b, loc, linear.depth());
    product.depth = depth;
    if (!operands.scales)
      return emitProduct(b, loc, product, vectors);

    // Group by group: each has scales of its own. The multiply-adds leave no
    // choice which product is rounded.
    auto type = VectorType::get({vectors.lanes}, b.getF32Type());
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value step = arith::ConstantIndexOp::create(b, loc, linear.scaleGroup());
    SmallVector<Value> start(numRows * product.columns.size(),
                             floatConstant(b, loc, type, 0.0));
    auto loop = scf::ForOp::create(
        b, loc, zero, depth, step, start,
        [&](OpBuilder &b, Location loc, Value k, ValueRange state) {
          product.begin = k;
          product.depth = arith::AddIOp::create(b, loc, k, step);
          Value group = arith::DivUIOp::create(b, loc, k, step);
          SmallVector<Value> scales, sums;
          product.zeros.clear();
          for (Value column : product.columns) {
            SmallVector<Value> at{panel, group, column};
            scales.push_back(
                vector::LoadOp::create(b, loc, type, operands.scales, at));
            if (!operands.zeros)
              continue;
            Value zero = vector::LoadOp::create(
                b, loc, VectorType::get({vectors.lanes}, b.getI8Type()),
                operands.zeros, at);
            product.zeros.push_back(convertElement(b, loc, zero, type));
          }
          for (auto &ofRow : emitProduct(b, loc, product, vectors))
            for (auto [part, scale] : llvm::zip_equal(ofRow, scales))
              sums.push_back(vector::FMAOp::create(b, loc, part, scale,
                                                   state[sums.size()]));
          scf::YieldOp::create(b, loc, sums);
        });
    Sums sums(numRows);
    for (auto [i, sum] : llvm::enumerate(loop.getResults()))
      sums[i / product.columns.size()].push_back(sum);
    return sums;
  }

  static void emitRows(OpBuilder &b, KernelOp kernel, Entry &entry,
                       const LinearShape &linear,
                       const LinearShape::Columns &columns,
                       const Operands &operands, ArrayRef<Value> tilePanels,
                       Value row, int64_t numRows, VectorShape vectors) {
    Location loc = kernel.getLoc();
    Sums sums(numRows);
    for (Value panel : tilePanels)
      for (auto [sum, part] :
           llvm::zip_equal(sums, emitPanel(b, loc, linear, operands, panel, row,
                                           numRows, vectors)))
        llvm::append_range(sum, part);
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
