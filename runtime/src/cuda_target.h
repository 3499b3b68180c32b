#pragma once
// Which GPU an engine runs on, and how the driver sees the plan's tensor maps.

#include "backend.h"
#include "cuda_driver.h"

namespace llmc::cuda {

// Throws LLMC_UNSUPPORTED with both names when `device` cannot run engines for
// `target`.
void check_target(const Driver &driver, Device device,
                  const TargetInfo &target);

// `base` is the address of the tensor. Throws LLMC_DEVICE_ERROR.
EncodedTensorMap encode_tensor_map(const Driver &driver,
                                   const TensorMapArg &map, uint64_t base,
                                   const Sizes &sizes);

} // namespace llmc::cuda
