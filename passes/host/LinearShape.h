// What a linear kernel computes, read from its body.
#pragma once

#include "dialects/llm/LlmDialect.h"

#include "mlir/IR/Builders.h"

namespace llmc {

class LinearShape {
public:
  // None when the kernel's body holds something that the panel kernel cannot
  // do; the row-by-row lowering takes it then. `panelRows` is the layout that
  // the weight has or would get, `lanes` the vector length.
  static std::optional<LinearShape> of(llm::KernelOp kernel, int64_t panelRows,
                                       int64_t lanes);

  mlir::Operation *linear; // llm.linear or llm.scaled_linear
  llm::PackedGluOp glu;    // may be null
  int64_t panelRows, lanes;

  mlir::Value input() const { return linear->getOperand(0); }
  mlir::Value weight() const { return linear->getOperand(1); }
  mlir::Value bias() const;
  // Of a scaled_linear; the weight's lies in panels like the weight.
  mlir::Value weightScale() const;
  mlir::Value weightZero() const; // lies as the scale; may be null
  mlir::Value inputScale() const;
  int64_t depth() const;
  // In features that share a scale of the weight.
  int64_t scaleGroup() const;
  int64_t productColumns() const;
  int64_t outputColumns() const {
    return glu ? productColumns() / 2 : productColumns();
  }
  bool isSplitGlu() const;
  // Panels that one tile multiplies: gate and up of a split GLU are apart.
  int64_t panelsPerTile() const { return isSplitGlu() ? 2 : 1; }
  int64_t columnTiles() const;
  // Is no vector cut by the last column?
  bool isWhole() const {
    return productColumns() % (panelRows * panelsPerTile()) == 0;
  }

  // First column of each vector that a tile makes, before and after the GLU.
  struct Columns {
    llvm::SmallVector<mlir::Value> product, output;
  };
  Columns columns(mlir::OpBuilder &b, mlir::Location loc,
                  mlir::Value tile) const;
  // The panels of a tile.
  llvm::SmallVector<mlir::Value> panels(mlir::OpBuilder &b, mlir::Location loc,
                                        mlir::Value tile) const;
};

} // namespace llmc
