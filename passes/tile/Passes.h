// Passes of the phase `tile`.
#pragma once

#include "mlir/Pass/Pass.h"

namespace llmc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/tile/Passes.h.inc"
} // namespace llmc
