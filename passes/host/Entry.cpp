#include "passes/host/Entry.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

PanelLayoutAttr llmc::layoutOf(KernelOp kernel, unsigned operand) {
  return kernel.getArgAttrOfType<PanelLayoutAttr>(operand, kLayoutAttr);
}

Entry::Entry(OpBuilder &builder, KernelOp kernel)
    : b(builder), loc(kernel.getLoc()) {
  MLIRContext *context = b.getContext();
  b.setInsertionPoint(kernel);
  auto type = b.getFunctionType(
      {LLVM::LLVMPointerType::get(context), b.getI64Type()}, {});
  // The symbol is free once the kernel is erased.
  function = func::FuncOp::create(b, loc, kernel.getSymName(), type);
  function->setAttr(entry_attr::kAnchor, kernel.getAnchorAttr());
  b.setInsertionPointToStart(function.addEntryBlock());

  // Sizes come first: memrefs need them.
  numRows = sizeSlot("rows");
  if (llvm::any_of(kernel.getArgumentTypes(), llvm::IsaPred<BatchType>)) {
    batchRefs.sequences = sizeSlot("S");
    Value width = sizeSlot("B");
    auto array = [&](StringRef part, unsigned operand, int64_t rank) {
      NamedAttrList description;
      description.set("operand", b.getI64IntegerAttr(operand));
      description.set("part", b.getStringAttr(part));
      SmallVector<int64_t> shape(rank, ShapedType::kDynamic);
      return makeMemref(
          pointerSlot(description), MemRefType::get(shape, b.getI32Type()),
          rank == 2 ? ValueRange{numRows, width} : ValueRange{numRows});
    };
    for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes()))
      if (isa<BatchType>(type)) {
        batchRefs.queryStart = array("query_start", i, 1);
        batchRefs.kvLen = array("kv_len", i, 1);
        batchRefs.blockTable = array("block_table", i, 2);
        NamedAttrList slots;
        slots.set("operand", b.getI64IntegerAttr(i));
        slots.set("part", b.getStringAttr("slots"));
        slotsPointer = pointerSlot(slots);
        batchRefs.slots = slotsFrom(arith::ConstantIndexOp::create(b, loc, 0));
      }
  }
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    addOperand(kernel, i);
  for (auto [i, type] : llvm::enumerate(kernel.getResultTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    NamedAttrList description;
    description.set("result", b.getI64IntegerAttr(i));
    results.push_back(makeMemref(
        pointerSlot(description),
        MemRefType::get(tensor.getShape(), tensor.getElementType()), numRows));
  }
  function->setAttr(entry_attr::kArguments, b.getArrayAttr(descriptions));
}

Value Entry::loadSlot(NamedAttrList description) {
  int32_t slot = descriptions.size();
  descriptions.push_back(description.getDictionary(b.getContext()));
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value address = LLVM::GEPOp::create(b, loc, pointer, b.getI64Type(),
                                      function.getArgument(0),
                                      ArrayRef<LLVM::GEPArg>{slot});
  return LLVM::LoadOp::create(b, loc, b.getI64Type(), address, /*alignment=*/8,
                              /*isVolatile=*/false, /*isNonTemporal=*/false,
                              /*isInvariant=*/true);
}

Value Entry::sizeSlot(StringRef size) {
  NamedAttrList description;
  description.set("i32", b.getStringAttr(size));
  return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                    loadSlot(description));
}

Value Entry::pointerSlot(NamedAttrList description) {
  return LLVM::IntToPtrOp::create(b, loc,
                                  LLVM::LLVMPointerType::get(b.getContext()),
                                  loadSlot(description));
}

// Strides follow from all sizes but the first, so that whatever `sizes` says
// about the leading dimension does not matter.
Value Entry::makeMemref(Value pointer, MemRefType type, ValueRange sizes) {
  LLVMTypeConverter converter(b.getContext());
  auto descriptor =
      MemRefDescriptor::poison(b, loc, converter.convertType(type));
  descriptor.setAllocatedPtr(b, loc, pointer);
  descriptor.setAlignedPtr(b, loc, pointer);
  descriptor.setConstantOffset(b, loc, 0);
  Value stride = LLVM::ConstantOp::create(b, loc, b.getI64Type(), 1);
  for (int64_t i = type.getRank(); i-- > 0;) {
    Value size =
        type.isDynamicDim(i)
            ? arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                         sizes[type.getDynamicDimIndex(i)])
                  .getResult()
            : LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                       type.getDimSize(i))
                  .getResult();
    descriptor.setSize(b, loc, i, size);
    descriptor.setStride(b, loc, i, stride);
    if (i)
      stride = LLVM::MulOp::create(b, loc, stride, size);
  }
  return UnrealizedConversionCastOp::create(b, loc, type, Value(descriptor))
      .getResult(0);
}

Value Entry::slotsFrom(Value row) {
  Value offset = arith::IndexCastOp::create(b, loc, b.getI64Type(), row);
  Value pointer =
      LLVM::GEPOp::create(b, loc, slotsPointer.getType(), b.getI32Type(),
                          slotsPointer, ArrayRef<LLVM::GEPArg>{offset});
  return makeMemref(pointer,
                    MemRefType::get({ShapedType::kDynamic}, b.getI32Type()),
                    numRows);
}

void Entry::addOperand(KernelOp kernel, unsigned i) {
  SmallVector<Value> &refs = operands.emplace_back();
  Type type = kernel.getArgumentTypes()[i];
  NamedAttrList description;
  description.set("operand", b.getI64IntegerAttr(i));
  if (auto kv = dyn_cast<KvType>(type)) {
    for (auto [part, dim] :
         {std::pair("k", kv.getHeadDim()), {"v", kv.getVHeadDim()}}) {
      if (!dim)
        continue;
      description.set("part", b.getStringAttr(part));
      auto pool = MemRefType::get(
          {ShapedType::kDynamic, kv.getHeads(), kv.getBlock(), dim},
          kv.getElement());
      refs.push_back(makeMemref(pointerSlot(description), pool, numRows));
    }
    return;
  }
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) // the batch
    return;
  SmallVector<int64_t> shape(tensor.getShape());
  if (PanelLayoutAttr layout = layoutOf(kernel, i))
    shape = {llvm::divideCeilSigned(shape[0], layout.getRows()),
             llvm::divideCeilSigned(shape[1], layout.getGroup()),
             layout.getRows(), layout.getGroup()};
  Type element = tensor.getElementType();
  if (element.isInteger(4)) {
    // A byte holds the two codes of a group, the first in its low half.
    element = b.getI8Type();
    shape.back() = 1;
  }
  refs.push_back(makeMemref(pointerSlot(description),
                            MemRefType::get(shape, element), numRows));
}

Entry::Tile Entry::tile(int64_t rowsPerTile, int64_t columnTiles) {
  function->setAttr(entry_attr::kRowsPerTile, b.getI64IntegerAttr(rowsPerTile));
  function->setAttr(entry_attr::kColumnTiles, b.getI64IntegerAttr(columnTiles));
  Value index = arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                           function.getArgument(1));
  Value step = arith::ConstantIndexOp::create(b, loc, rowsPerTile);
  Tile tile;
  Value rowBlock = index;
  if (columnTiles > 1) {
    Value rowBlocks = arith::CeilDivUIOp::create(b, loc, numRows, step);
    tile.column = arith::DivUIOp::create(b, loc, index, rowBlocks);
    rowBlock = arith::RemUIOp::create(b, loc, index, rowBlocks);
  } else {
    tile.column = arith::ConstantIndexOp::create(b, loc, 0);
  }
  tile.rowBegin = arith::MulIOp::create(b, loc, rowBlock, step);
  Value end = arith::AddIOp::create(b, loc, tile.rowBegin, step);
  tile.rowEnd = arith::MinUIOp::create(b, loc, end, numRows);
  return tile;
}
