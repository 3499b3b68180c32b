// Passes of the phase `host`.
#pragma once

#include "mlir/Pass/Pass.h"

namespace llmc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/host/Passes.h.inc"
} // namespace llmc
