#include "load_options.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace {

// A property for a field of llmc_engine_options; C has no bool, Python does.
template <class T, class Field>
void field(nb::class_<LoadOptions> &c, const char *name,
           Field llmc_engine_options::*member) {
  c.def_prop_rw(
      name,
      [member](const LoadOptions &self) {
        return static_cast<T>(self.values.*member);
      },
      [member](LoadOptions &self, T value) {
        self.values.*member = static_cast<Field>(value);
      });
}

} // namespace

void bind_load_options(nb::module_ &m) {
  using Options = llmc_engine_options;
  nb::class_<LoadOptions> c(m, "LoadOptions", "llmc_engine_options of llmc.h.");
  c.def(nb::init<>());
  field<int>(c, "num_threads", &Options::num_threads);
  field<int>(c, "device", &Options::device);
  field<int64_t>(c, "kv_cache_tokens", &Options::kv_cache_tokens);
  field<int64_t>(c, "kv_cache_bytes", &Options::kv_cache_bytes);
  field<double>(c, "free_memory_fraction", &Options::free_memory_fraction);
  field<int>(c, "max_batch_size", &Options::max_batch_size);
  field<int>(c, "max_num_tokens", &Options::max_num_tokens);
  field<int>(c, "policy", &Options::policy);
  field<int>(c, "verify_weights", &Options::verify_weights);
  c.def_rw("cuda_library", &LoadOptions::cuda_library, nb::arg().none());
  field<double>(c, "stall_seconds", &Options::stall_seconds);
  c.def_rw("trace_file", &LoadOptions::trace_file, nb::arg().none());
  field<bool>(c, "cuda_graphs", &Options::cuda_graphs);
  field<bool>(c, "enable_block_reuse", &Options::enable_block_reuse);
  field<bool>(c, "enable_partial_reuse", &Options::enable_partial_reuse);
  field<int64_t>(c, "host_memory_bytes", &Options::host_memory_bytes);
  field<bool>(c, "overlap", &Options::overlap);
  field<int>(c, "max_waiting", &Options::max_waiting);
}
