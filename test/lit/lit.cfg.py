# lit configuration of the .mlir tests; mirrors dialects/ and passes/.
# `config` and `lit_config` are put here by lit.
import os

import lit.formats

config.name = "llmc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)

if not hasattr(config, "llmc_bin_dir"):
    lit_config.fatal("run lit on a build tree: lit -v build/dev/test/lit")

# llmc-opt of the build tree first, FileCheck and `not` of the LLVM wheel next.
search = [config.llmc_bin_dir, config.llvm_tools_dir, config.mlir_tools_dir]
config.environment["PATH"] = os.pathsep.join([*search, os.environ["PATH"]])
config.environment["PYTHONPATH"] = config.llmc_python_dir
config.environment["FILECHECK_OPTS"] = "--dump-input-filter=error"

config.substitutions.append(("%python", config.python))
