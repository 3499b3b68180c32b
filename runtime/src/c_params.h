#pragma once
// The C API's sampling parameters and the runtime's.

#include "llmc/llmc.h"
#include "sampling_params.h"

namespace llmc {

llmc_sampling_params default_params();

// A copy whose fields behind struct_size, of a caller with an older header,
// have their defaults. NULL: all defaults. LLMC_INVALID_ARGUMENT when the size
// is none that such a header had.
llmc_sampling_params known_params(const llmc_sampling_params *params);

// Draws a seed when there is none. LLMC_INVALID_ARGUMENT for missing arrays.
SamplingParams sampling_params(const llmc_sampling_params &params);

ServingParams serving_params(const llmc_sampling_params &params);

} // namespace llmc
