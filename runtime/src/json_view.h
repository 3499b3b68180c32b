#pragma once
// Typed reads of a JSON document whose errors name the file, the place in it,
// what was expected and what stands there.

#include "dtype.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llmc {

class JsonView {
public:
  JsonView(const nlohmann::json &value, std::string path)
      : value_(&value), path_(std::move(path)) {}

  JsonView at(const char *key) const; // member of an object, required
  std::optional<JsonView>
  find(const char *key) const;     // absent and null are the same
  JsonView at(size_t index) const; // element of an array
  size_t size() const;             // length of an array
  std::vector<JsonView> elements() const;
  std::vector<std::string> keys() const;

  int64_t integer(int64_t min, int64_t max) const;
  double number() const;
  std::string string() const;
  bool boolean() const;
  DType dtype() const;

  bool is_integer() const;
  bool is_string() const;
  bool is_array() const;
  const std::string &path() const { return path_; }

  // Throws LLMC_BAD_ENGINE: "<path>: expected <expected>, found <what stands
  // there>".
  [[noreturn]] void expected(const std::string &what) const;

private:
  const nlohmann::json *value_;
  std::string path_;
};

// Parses a whole document; `name` is the file name used in messages. A syntax
// error names line and column.
nlohmann::json parse_json(std::span<const std::byte> text,
                          const std::string &name);

} // namespace llmc
