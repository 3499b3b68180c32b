#pragma once
// Element types of the engine format.

#include <cstddef>
#include <optional>
#include <string_view>

namespace llmc {

enum class DType { F32, F16, BF16, F8E4M3, F8E5M2, I8, U8, I32, I64, U64 };

struct DTypeInfo {
  DType dtype;
  std::string_view name;        // in manifest.json and plan.json
  std::string_view safetensors; // in the header of weights.safetensors
  size_t bytes;
};

inline constexpr DTypeInfo kDTypes[] = {
    {DType::F32, "f32", "F32", 4},
    {DType::F16, "f16", "F16", 2},
    {DType::BF16, "bf16", "BF16", 2},
    {DType::F8E4M3, "f8e4m3", "F8_E4M3", 1},
    {DType::F8E5M2, "f8e5m2", "F8_E5M2", 1},
    {DType::I8, "i8", "I8", 1},
    {DType::U8, "u8", "U8", 1},
    {DType::I32, "i32", "I32", 4},
    {DType::I64, "i64", "I64", 8},
    {DType::U64, "u64", "U64", 8},
};

constexpr const DTypeInfo &info(DType dtype) {
  return kDTypes[static_cast<int>(dtype)];
}

constexpr std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo &row : kDTypes)
    if (row.name == name)
      return row.dtype;
  return std::nullopt;
}

constexpr std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const DTypeInfo &row : kDTypes)
    if (row.safetensors == name)
      return row.dtype;
  return std::nullopt;
}

} // namespace llmc
