// llmc.dialects._llmc_mlir: puts llmc's dialects and passes into `mlir`.
#include "dialects/extension/CApi.h"

#include "mlir/Bindings/Python/NanobindAdaptors.h"

namespace nb = nanobind;

NB_MODULE(_llmc_mlir, m) {
  m.doc() = "Dialects and passes of llmc for the Python package mlir.";
  m.def("register_dialects", llmcRegisterDialects, nb::arg("context"),
        "Loads llmc's dialects into a context.");
  m.def("register_passes", llmcRegisterPasses,
        "Makes llmc's passes known to PassManager.parse.");
}
