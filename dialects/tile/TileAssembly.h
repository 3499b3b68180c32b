// Pieces of assembly that the declarative formats of the ops share.
#pragma once

#include "dialects/tile/TileDialect.h"

namespace llmc::tile {

/// `as (%a, %b) { ... }`: the tiles of a stage of `ring`, then the body.
mlir::ParseResult parseSlotRegion(mlir::OpAsmParser &parser, mlir::Region &body,
                                  mlir::Type ring);
void printSlotRegion(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                     mlir::Region &body, mlir::Type ring);

/// The same with `-> (results)` in front of the body.
mlir::ParseResult
parseSlotRegionResults(mlir::OpAsmParser &parser, mlir::Region &body,
                       llvm::SmallVectorImpl<mlir::Type> &results,
                       mlir::Type ring);
void printSlotRegionResults(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                            mlir::Region &body, mlir::TypeRange results,
                            mlir::Type ring);

/// `[%i, %j]` for i32 indexes, `[%i : i64]` otherwise.
mlir::ParseResult parseIndices(
    mlir::OpAsmParser &parser,
    llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &indices,
    llvm::SmallVectorImpl<mlir::Type> &types);
void printIndices(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                  mlir::OperandRange indices, mlir::TypeRange types);

} // namespace llmc::tile
