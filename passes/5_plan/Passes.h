// Passes of the phase `plan`.
#pragma once

#include "mlir/Pass/Pass.h"

namespace llmc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/5_plan/Passes.h.inc"
} // namespace llmc
