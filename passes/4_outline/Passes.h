// Passes of the phase `outline`.
#pragma once

#include "mlir/Pass/Pass.h"

namespace llmc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/4_outline/Passes.h.inc"
} // namespace llmc
