#include "passes/Pipelines.h"

void llmc::registerPipelines() {}
