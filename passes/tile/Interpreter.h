// Follows one role of a kernel with small numbers, to learn in which order it
// uses its rings.
#pragma once

#include "dialects/tile/TileDialect.h"

namespace llmc::tile {

/// One thing a role does to a ring.
struct RingEvent {
  enum Kind { Fill, Resume, Use, Release } kind;
  mlir::Value ring;
  mlir::Operation *op;
};

/// What a role does, in order.
struct RoleTrace {
  mlir::Operation *scope = nullptr;
  llvm::SmallVector<RingEvent> events;
  bool truncated = false;
};

/// Interprets the integer control of a role. Every scalar kernel argument and
/// every loaded integer is `probe`; the grid has one block. Reports what is
/// wrong within the role: a release of a stage that a multiply in flight may
/// read, a use after release, stages held at the end.
mlir::FailureOr<RoleTrace> traceRole(mlir::Operation *scope, int64_t probe,
                                     int64_t maxEvents);

} // namespace llmc::tile
