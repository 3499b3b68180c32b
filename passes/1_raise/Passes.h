// Passes of the phase `raise`.
#pragma once

#include "mlir/Pass/Pass.h"

namespace llmc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/1_raise/Passes.h.inc"
} // namespace llmc
