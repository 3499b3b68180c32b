#include "cuda_target.h"

#include "error.h"

#include <cctype>

namespace llmc::cuda {

namespace {

struct Capability {
  int major = 0, minor = 0;
};

// "sm_90a" runs on 9.0 exactly; "sm_90" on 9.x with x >= 0 of the same major
// version.
bool runs_on(const std::string &arch, Capability found, Capability &needed) {
  std::string digits;
  for (char c : arch)
    if (std::isdigit(static_cast<unsigned char>(c)))
      digits += c;
  if (!arch.starts_with("sm_") || digits.size() < 2)
    fail(LLMC_BAD_ENGINE,
         "manifest.json: target.arch: expected sm_<number>, found ", arch,
         "; recompile the engine");
  needed.major = std::stoi(digits.substr(0, digits.size() - 1));
  needed.minor = digits.back() - '0';
  if (!std::isdigit(static_cast<unsigned char>(arch.back())))
    return found.major == needed.major && found.minor == needed.minor;
  return found.major == needed.major && found.minor >= needed.minor;
}

int tensor_map_type(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return kMapF32;
  case DType::F16:
    return kMapF16;
  case DType::BF16:
    return kMapBF16;
  case DType::I32:
    return kMapI32;
  case DType::I64:
    return kMapI64;
  case DType::U64:
    return kMapU64;
  default:
    return kMapU8; // one-byte types move as bytes
  }
}

} // namespace

void check_target(const Driver &driver, Device device,
                  const TargetInfo &target) {
  Capability found, needed;
  driver.check(driver.cuDeviceGetAttribute(&found.major,
                                           kComputeCapabilityMajor, device),
               "cannot read the GPU's architecture");
  driver.check(driver.cuDeviceGetAttribute(&found.minor,
                                           kComputeCapabilityMinor, device),
               "cannot read the GPU's architecture");
  char name[128] = "GPU";
  driver.cuDeviceGetName(name, sizeof(name), device);
  if (!runs_on(target.arch, found, needed))
    fail(LLMC_UNSUPPORTED, "the engine is for ", target.arch,
         " (compute capability ", needed.major, ".", needed.minor,
         "), this GPU is ", name, " with ", found.major, ".", found.minor,
         "; recompile it with `llmc compile --target sm_", found.major,
         found.minor, "`");
}

EncodedTensorMap encode_tensor_map(const Driver &driver,
                                   const TensorMapArg &map, uint64_t base,
                                   const Sizes &sizes) {
  uint64_t shape[5], strides[5];
  uint32_t element_strides[5] = {1, 1, 1, 1, 1};
  for (size_t i = 0; i < map.shape.size(); ++i)
    shape[i] = static_cast<uint64_t>(map.shape[i].evaluate(sizes));
  for (size_t i = 0; i < map.strides.size(); ++i)
    strides[i] = static_cast<uint64_t>(map.strides[i].evaluate(sizes));
  auto log2_step = [](int bytes, int first) {
    return bytes == 0 ? 0 : bytes == first ? 1 : bytes == 2 * first ? 2 : 3;
  };
  EncodedTensorMap encoded{};
  driver.check(driver.cuTensorMapEncodeTiled(
                   &encoded, tensor_map_type(map.dtype),
                   static_cast<unsigned>(map.shape.size()),
                   reinterpret_cast<void *>(base), shape, strides,
                   map.box.data(), element_strides,
                   /*interleave=*/0, log2_step(map.swizzle, 32),
                   log2_step(map.l2_promotion, 64),
                   /*fill=*/0),
               "cannot encode a tensor map of the plan");
  return encoded;
}

} // namespace llmc::cuda
