// C functions that the Python extension calls: its file is compiled with RTTI
// and must not see MLIR's C++ classes, which are compiled without.
#pragma once

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

// Loads llmc's dialects and the interfaces attached to upstream ones.
void llmcRegisterDialects(MlirContext context);

// Makes llmc's passes and pipelines known to the pass-pipeline parser.
void llmcRegisterPasses(void);

#ifdef __cplusplus
}
#endif
