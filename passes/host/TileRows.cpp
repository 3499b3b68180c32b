#include "passes/host/Dialects.h"
#include "passes/host/Entry.h"
#include "passes/host/Passes.h"
#include "passes/linalg/Emitter.h"

namespace llmc {
#define GEN_PASS_DEF_HOSTTILEROWS
#include "passes/host/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {

// Rewrites the body of a kernel for one row.
class RowBody {
public:
  RowBody(OpBuilder &b, KernelOp kernel, Entry &entry, Value row)
      : b(b), kernel(kernel), entry(entry), row(row), loc(kernel.getLoc()) {}

  void emit();

private:
  // Is the value used at any row, not at this one?
  static bool isRandomAccess(BlockArgument argument) {
    return llvm::any_of(argument.getUses(), [](OpOperand &use) {
      return isa<GatherRowsOp, EmbeddingOp>(use.getOwner()) &&
             (isa<GatherRowsOp>(use.getOwner()) ? use.getOperandNumber() == 0
                                                : use.getOperandNumber() == 1);
    });
  }
  static Type oneRow(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.hasStaticShape())
      return type;
    SmallVector<int64_t> shape(tensor.getShape());
    for (int64_t &size : shape)
      size = ShapedType::isDynamic(size) ? 1 : size;
    return tensor.clone(shape);
  }

  Value argument(BlockArgument argument);
  Value rowOf(Value memref);
  Value tensorOf(Value memref);
  Value handle(Type type, ArrayRef<Value> memrefs);
  void cloneOp(Operation &op);
  Value gatherFromPanels(EmbeddingOp op, BlockArgument table);

  OpBuilder &b;
  KernelOp kernel;
  Entry &entry;
  Value row;
  Location loc;
  IRMapping mapping;
};

// The memref of row `row`: [1, ...], at an offset.
Value RowBody::rowOf(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)), sizes;
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  offsets[0] = row;
  for (int64_t size : type.getShape())
    sizes.push_back(b.getIndexAttr(size));
  sizes[0] = b.getIndexAttr(1);
  return memref::SubViewOp::create(b, loc, memref, offsets, sizes, strides);
}

Value RowBody::tensorOf(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  auto tensor = RankedTensorType::get(type.getShape(), type.getElementType());
  return bufferization::ToTensorOp::create(b, loc, tensor, memref,
                                           /*restrict=*/true);
}

Value RowBody::handle(Type type, ArrayRef<Value> memrefs) {
  return UnrealizedConversionCastOp::create(b, loc, type, memrefs).getResult(0);
}

Value RowBody::argument(BlockArgument argument) {
  unsigned i = argument.getArgNumber();
  Type type = argument.getType();
  if (isa<KvType>(type))
    return handle(type, entry.pools(i));
  if (isa<BatchType>(type)) {
    const BatchRefs &batch = entry.batch();
    // Row 0 of the body is row `row` of the step.
    return handle(type, {batch.queryStart, batch.kvLen, batch.blockTable,
                         entry.slotsFrom(row)});
  }
  auto tensor = cast<RankedTensorType>(type);
  if (tensor.hasStaticShape() || isRandomAccess(argument))
    return tensorOf(entry.operand(i));
  return tensorOf(rowOf(entry.operand(i)));
}

// Every dynamic size is the number of rows: one.
void RowBody::cloneOp(Operation &op) {
  auto mapped = [&](Value value) { return mapping.lookupOrDefault(value); };
  auto setResult = [&](Value result) { mapping.map(op.getResult(0), result); };
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return setResult(tensor::ExpandShapeOp::create(
        b, op.getLoc(), oneRow(expand.getType()), mapped(expand.getSrc()),
        expand.getReassociationIndices()));
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return setResult(tensor::CollapseShapeOp::create(
        b, op.getLoc(), cast<RankedTensorType>(oneRow(collapse.getType())),
        mapped(collapse.getSrc()), collapse.getReassociationIndices()));
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    SmallVector<OpFoldResult> sizes = slice.getMixedSizes();
    for (OpFoldResult &size : sizes)
      if (isa<Value>(size))
        size = b.getIndexAttr(1);
    return setResult(tensor::ExtractSliceOp::create(
        b, op.getLoc(), cast<RankedTensorType>(oneRow(slice.getType())),
        mapped(slice.getSource()), slice.getMixedOffsets(), sizes,
        slice.getMixedStrides()));
  }
  if (auto empty = dyn_cast<tensor::EmptyOp>(op))
    return setResult(tensor::EmptyOp::create(
        b, op.getLoc(), oneRow(empty.getType()), ValueRange{}));
  if (auto splat = dyn_cast<tensor::SplatOp>(op))
    return setResult(tensor::SplatOp::create(
        b, op.getLoc(), mapped(splat.getInput()),
        cast<RankedTensorType>(oneRow(splat.getType()))));
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return setResult(
        BroadcastOp::create(b, op.getLoc(), oneRow(broadcast.getType()),
                            mapped(broadcast.getInput()), ValueRange{}));
  if (auto embedding = dyn_cast<EmbeddingOp>(op))
    if (auto table = dyn_cast<BlockArgument>(embedding.getTable()))
      if (layoutOf(kernel, table.getArgNumber()))
        return setResult(gatherFromPanels(embedding, table));
  Operation *clone = b.clone(op, mapping);
  for (Value result : clone->getResults())
    result.setType(oneRow(result.getType()));
}

// One row of a table that is stored in panels for the linear that shares it.
Value RowBody::gatherFromPanels(EmbeddingOp op, BlockArgument table) {
  PanelLayoutAttr layout = layoutOf(kernel, table.getArgNumber());
  Value panels = entry.operandOf(table);
  Emitter e(b, loc);
  auto type = cast<RankedTensorType>(oneRow(op.getType()));
  return e.map(
      e.empty(type, {}), {{mapping.lookup(op.getIds()), {0}}},
      [&](OpBuilder &b, Location loc, ValueRange in) {
        Value id = arith::IndexCastOp::create(b, loc, b.getIndexType(), in[0]);
        Value k = linalg::IndexOp::create(b, loc, 1);
        Value rows = arith::ConstantIndexOp::create(b, loc, layout.getRows());
        Value group = arith::ConstantIndexOp::create(b, loc, layout.getGroup());
        SmallVector<Value> at{arith::DivUIOp::create(b, loc, id, rows),
                              arith::DivUIOp::create(b, loc, k, group),
                              arith::RemUIOp::create(b, loc, id, rows),
                              arith::RemUIOp::create(b, loc, k, group)};
        Value element = memref::LoadOp::create(b, loc, panels, at);
        return convertElement(b, loc, element, type.getElementType());
      });
}

void RowBody::emit() {
  Block &body = kernel.getBody().front();
  for (BlockArgument argument : body.getArguments())
    if (!mapping.contains(argument))
      mapping.map(argument, this->argument(argument));
  for (Operation &op : body.without_terminator())
    cloneOp(op);
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    Value row = rowOf(entry.result(i));
    auto store = bufferization::MaterializeInDestinationOp::create(
        b, loc, mapping.lookup(value), row);
    store.setRestrict(true);
    store.setWritable(true);
  }
}

// Rows that are worth a visit of a thread: about 4096 elements.
static int64_t rowsPerTile(KernelOp kernel) {
  int64_t widest = 1;
  kernel.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type)) {
        int64_t elements = 1;
        for (int64_t size : tensor.getShape())
          elements *= ShapedType::isDynamic(size) ? 1 : size;
        widest = std::max(widest, elements);
      }
  });
  return std::clamp<int64_t>(4096 / widest, 1, 16);
}

struct HostTileRows : llmc::impl::HostTileRowsBase<HostTileRows> {
  using Base::Base;

  void runOnOperation() override {
    for (KernelOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
      OpBuilder b(kernel);
      Entry entry(b, kernel);
      Entry::Tile tile = entry.tile(rowsPerTile(kernel), 1);
      Location loc = kernel.getLoc();
      Value step = arith::ConstantIndexOp::create(b, loc, 1);
      auto loop = scf::ForOp::create(b, loc, tile.rowBegin, tile.rowEnd, step);
      func::ReturnOp::create(b, loc);
      b.setInsertionPointToStart(loop.getBody());
      RowBody(b, kernel, entry, loop.getInductionVar()).emit();
      kernel.erase();
    }
  }
};
} // namespace
