#pragma once
// From the path of an engine to a model that can compute.

#include "llmc/llmc.h"
#include "manifest.h"
#include "model_runner.h"
#include "scheduler.h"

#include <memory>
#include <string>

namespace llmc {

struct LoadedModel {
  Manifest manifest;
  SchedulerConfig config; // the engine's limits, narrowed by the options
  std::unique_ptr<ModelRunner> runner;
};

// What is in force of the option of this name; 0: never.
double stall_seconds(const TargetInfo &target,
                     const llmc_engine_options &options);

// What is in force of an option that may narrow a limit; 0 leaves the limit.
// Throws LLMC_INVALID_ARGUMENT.
int narrowed(const char *name, int wanted, int limit);

// Opens the engine, checks it, takes all memory and uploads the weights. Throws
// what is wrong with the engine, the options or the machine.
LoadedModel load_model(const std::string &path,
                       const llmc_engine_options &options);

} // namespace llmc
