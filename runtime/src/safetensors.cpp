#include "safetensors.h"

#include "error.h"
#include "json_view.h"

#include <nlohmann/json.hpp>

#include <cstring>

namespace llmc {

std::map<std::string, TensorView>
read_safetensors(std::span<const std::byte> file, const std::string &name) {
  uint64_t header_bytes = 0;
  if (file.size() >= 8)
    std::memcpy(&header_bytes, file.data(), 8);
  if (file.size() < 8 || header_bytes > file.size() - 8)
    fail(LLMC_BAD_ENGINE, name, ": expected a safetensors header, found ",
         file.size(),
         " bytes that do not hold one; the file is truncated or damaged: copy "
         "it again or run `llmc refit`");
  nlohmann::json document = parse_json(file.subspan(8, header_bytes), name);
  std::span<const std::byte> data = file.subspan(8 + header_bytes);
  JsonView root(document, name + ": ");
  std::map<std::string, TensorView> tensors;
  for (const std::string &key : root.keys()) {
    if (key == "__metadata__")
      continue;
    JsonView row = root.at(key.c_str());
    TensorView tensor{};
    auto dtype = dtype_from_safetensors(row.at("dtype").string());
    if (!dtype)
      row.at("dtype").expected("a safetensors dtype that llmc knows");
    tensor.dtype = *dtype;
    uint64_t size = info(*dtype).bytes;
    for (const JsonView &dim : row.at("shape").elements()) {
      tensor.shape.push_back(dim.integer(0, INT64_C(1) << 40));
      if (__builtin_mul_overflow(
              size, static_cast<uint64_t>(tensor.shape.back()), &size))
        dim.expected("a smaller size");
    }
    uint64_t begin = static_cast<uint64_t>(
        row.at("data_offsets").at(size_t{0}).integer(0, INT64_MAX));
    uint64_t end = static_cast<uint64_t>(
        row.at("data_offsets").at(1).integer(0, INT64_MAX));
    if (begin > end || end - begin != size)
      row.at("data_offsets").expected(concat("a span of ", size, " bytes"));
    if (end > data.size())
      fail(LLMC_BAD_ENGINE, name, ": tensor ", key, " ends at byte ", end,
           " of the data, but the file has only ", data.size(),
           "; it is truncated: copy it again or run `llmc refit`");
    tensor.bytes = data.subspan(begin, size);
    tensors.emplace(key, std::move(tensor));
  }
  return tensors;
}

} // namespace llmc
