#pragma once
// weights.safetensors: names, types and bytes of tensors, read in place from
// the mapped file.

#include "dtype.h"
#include "mapped_file.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace llmc {

struct TensorView {
  DType dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

// Throws LLMC_BAD_ENGINE when the header is not valid or a tensor reaches past
// the end of the file.
std::map<std::string, TensorView>
read_safetensors(std::span<const std::byte> file, const std::string &name);

} // namespace llmc
