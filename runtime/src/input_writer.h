#pragma once
// Fills the staging block of a step; see step_inputs.h for the layout.

#include "batch.h"
#include "kv_cache_manager.h"
#include "step_inputs.h"

namespace llmc {

void write_step_inputs(const StepInputs &inputs, std::byte *block,
                       const Batch &batch, const KvCacheManager &kv_cache);

// Makes a step of `num_sequences` sequences with one token and one logit row
// each one of `rows`.
void pad_step_inputs(const StepInputs &inputs, std::byte *block,
                     int num_sequences, int rows);

} // namespace llmc
