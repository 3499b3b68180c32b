// The outside of a host kernel: `void entry(const uint64_t *args, int64_t
// tile)`.
#pragma once

#include "dialects/llm/LlmDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace llmc {

// Names of the attributes by which codegen learns how to launch an entry.
namespace entry_attr {
// Array of dictionaries, one for each 64-bit slot of `args`: the JSON arguments
// of docs/architecture.md, section 2, with the size `rows` for the rows of the
// launch.
inline constexpr llvm::StringLiteral kArguments = "host.arguments";
// The grid is ceildiv(rows, rows_per_tile) * column_tiles tiles; tile i works
// on row block i % row_blocks and column block i / row_blocks.
inline constexpr llvm::StringLiteral kRowsPerTile = "host.rows_per_tile";
inline constexpr llvm::StringLiteral kColumnTiles = "host.column_tiles";
// Name of the anchor that the kernel had.
inline constexpr llvm::StringLiteral kAnchor = "host.anchor";
// The function has code for blocks of several sizes, in each of which a row
// must get the same bits: its sums are added in the order in which they are
// written.
inline constexpr llvm::StringLiteral kOrderedSums = "host.ordered_sums";
} // namespace entry_attr

// The layout that `host-choose-layouts` gave to the weight of a kernel's
// operand.
inline constexpr llvm::StringLiteral kLayoutAttr = "llm.layout";
llm::PanelLayoutAttr layoutOf(llm::KernelOp kernel, unsigned operand);

// The arrays of `!llm.batch` as memrefs.
struct BatchRefs {
  mlir::Value queryStart, kvLen, blockTable, slots;
  mlir::Value sequences; // index
};

// A function that replaces an `llm.kernel`, with its arguments as memrefs.
class Entry {
public:
  // Creates the function beside `kernel`; the builder is left in its body.
  Entry(mlir::OpBuilder &builder, llm::KernelOp kernel);

  // Splits the grid; call once. Returns the first row and the row after the
  // last of this tile and its column block.
  struct Tile {
    mlir::Value rowBegin, rowEnd, column;
  };
  Tile tile(int64_t rowsPerTile, int64_t columnTiles);

  // The memref of a tensor operand: its shape, or [panels, groups, rows,
  // group].
  mlir::Value operand(unsigned i) const { return operands[i].front(); }
  // The memref that a block argument of the kernel stands for.
  mlir::Value operandOf(mlir::Value argument) const {
    return operand(llvm::cast<mlir::BlockArgument>(argument).getArgNumber());
  }
  // K and V pools of an `!llm.kv` operand.
  llvm::ArrayRef<mlir::Value> pools(unsigned i) const { return operands[i]; }
  mlir::Value result(unsigned i) const { return results[i]; }
  const BatchRefs &batch() const { return batchRefs; }
  // The slots from `row` on.
  mlir::Value slotsFrom(mlir::Value row);
  mlir::Value rows() const { return numRows; }

  mlir::func::FuncOp function;

private:
  mlir::Value loadSlot(mlir::NamedAttrList description);
  mlir::Value sizeSlot(llvm::StringRef size);
  mlir::Value pointerSlot(mlir::NamedAttrList description);
  mlir::Value makeMemref(mlir::Value pointer, mlir::MemRefType type,
                         mlir::ValueRange sizes);
  void addOperand(llm::KernelOp kernel, unsigned i);

  mlir::OpBuilder &b;
  mlir::Location loc;
  llvm::SmallVector<mlir::Attribute> descriptions;
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> operands;
  llvm::SmallVector<mlir::Value> results;
  BatchRefs batchRefs;
  mlir::Value slotsPointer, numRows;
};

} // namespace llmc
