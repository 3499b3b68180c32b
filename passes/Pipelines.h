// Named pipelines: the passes of a phase in the order the compiler runs them.
#pragma once

namespace llmc {
void registerPipelines();
} // namespace llmc
