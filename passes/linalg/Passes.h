// Passes of the phase `linalg`.
#pragma once

#include "mlir/Pass/Pass.h"

namespace llmc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/linalg/Passes.h.inc"
} // namespace llmc
