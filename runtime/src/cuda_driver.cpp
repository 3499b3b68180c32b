#include "cuda_driver.h"

#include "error.h"

#include <cstdlib>
#include <dlfcn.h>

namespace llmc::cuda {

const Driver Driver::load(const std::string &library) {
  std::string path = library;
  if (path.empty())
    if (const char *chosen = std::getenv("LLMC_CUDA_LIBRARY"))
      path = chosen;
  if (path.empty())
    path = "libcuda.so.1";
  // Never closed: the driver keeps threads that outlive us.
  void *handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!handle)
    fail(LLMC_UNSUPPORTED, "a GPU engine needs the NVIDIA driver, but ", path,
         " cannot be loaded (", ::dlerror(),
         "); install the driver, or compile with --target host to run on the "
         "CPU");
  Driver driver;
#define LLMC_CUDA_LOAD(result, name, parameters)                               \
  driver.name =                                                                \
      reinterpret_cast<result(*) parameters>(::dlsym(handle, #name));          \
  if (!driver.name)                                                            \
    fail(LLMC_UNSUPPORTED, path,                                               \
         " has no function " #name                                             \
         ": the NVIDIA driver is too old; install one for CUDA 12 or later");
  LLMC_CUDA_FUNCTIONS(LLMC_CUDA_LOAD)
#undef LLMC_CUDA_LOAD
  return driver;
}

std::string Driver::error_text(Result result) const {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  return concat(name ? name : "unknown CUDA error ",
                name ? "" : std::to_string(result), " (",
                text ? text : "no description", ")");
}

void Driver::check(Result result, const std::string &what) const {
  if (result != 0)
    fail(LLMC_DEVICE_ERROR, what, ": ", error_text(result));
}

} // namespace llmc::cuda
