#pragma once
// What Python passes to load an engine; see llmc_engine_options.

#include "llmc/llmc.h"

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

struct LoadOptions {
  llmc_engine_options values = llmc_engine_options_default();
  std::optional<std::string> cuda_library, trace_file;

  // Valid while this lives.
  llmc_engine_options options() const {
    llmc_engine_options result = values;
    result.cuda_library = cuda_library ? cuda_library->c_str() : nullptr;
    result.trace_file = trace_file ? trace_file->c_str() : nullptr;
    return result;
  }
};

void bind_load_options(nanobind::module_ &m);
