#include "json_view.h"

#include "error.h"

#include <nlohmann/json.hpp>

namespace llmc {

using nlohmann::json;

void JsonView::expected(const std::string &what) const {
  std::string found =
      value_->dump(-1, ' ', false, json::error_handler_t::replace);
  if (found.size() > 60)
    found = found.substr(0, 60) + "...";
  fail(LLMC_BAD_ENGINE, path_, ": expected ", what, ", found ", found,
       "; the engine is damaged or comes from another compiler version: "
       "recompile it");
}

JsonView JsonView::at(const char *key) const {
  if (!value_->is_object())
    expected(concat("an object with \"", key, "\""));
  auto it = value_->find(key);
  if (it == value_->end())
    expected(concat("a member \"", key, "\""));
  return {*it, concat(path_, path_.ends_with(' ') ? "" : ".", key)};
}

std::optional<JsonView> JsonView::find(const char *key) const {
  if (!value_->is_object())
    expected("an object");
  auto it = value_->find(key);
  if (it == value_->end() || it->is_null())
    return std::nullopt;
  return JsonView(*it, concat(path_, path_.ends_with(' ') ? "" : ".", key));
}

size_t JsonView::size() const {
  if (!value_->is_array())
    expected("an array");
  return value_->size();
}

JsonView JsonView::at(size_t index) const {
  if (index >= size())
    expected(concat("an array of at least ", index + 1, " elements"));
  return {(*value_)[index], concat(path_, "[", index, "]")};
}

std::vector<JsonView> JsonView::elements() const {
  std::vector<JsonView> result;
  for (size_t i = 0; i < size(); ++i)
    result.push_back(at(i));
  return result;
}

std::vector<std::string> JsonView::keys() const {
  if (!value_->is_object())
    expected("an object");
  std::vector<std::string> result;
  for (auto it = value_->begin(); it != value_->end(); ++it)
    result.push_back(it.key());
  return result;
}

int64_t JsonView::integer(int64_t min, int64_t max) const {
  std::string range = concat("an integer from ", min, " to ", max);
  if (!value_->is_number_integer())
    expected(range);
  if (value_->is_number_unsigned() &&
      value_->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    expected(range);
  int64_t v = value_->get<int64_t>();
  if (v < min || v > max)
    expected(range);
  return v;
}

double JsonView::number() const {
  if (!value_->is_number())
    expected("a number");
  return value_->get<double>();
}

std::string JsonView::string() const {
  if (!value_->is_string())
    expected("a string");
  return value_->get<std::string>();
}

bool JsonView::boolean() const {
  if (!value_->is_boolean())
    expected("true or false");
  return value_->get<bool>();
}

DType JsonView::dtype() const {
  if (value_->is_string())
    if (auto dtype = dtype_from_name(value_->get_ref<const std::string &>()))
      return *dtype;
  expected("a dtype name (f32 f16 bf16 f8e4m3 f8e5m2 i8 u8 i32 i64 u64)");
}

bool JsonView::is_integer() const { return value_->is_number_integer(); }
bool JsonView::is_string() const { return value_->is_string(); }
bool JsonView::is_array() const { return value_->is_array(); }

json parse_json(std::span<const std::byte> text, const std::string &name) {
  const char *begin = reinterpret_cast<const char *>(text.data());
  try {
    return json::parse(begin, begin + text.size());
  } catch (const json::parse_error &error) {
    fail(LLMC_BAD_ENGINE, name, ": not valid JSON (", error.what(),
         "); the file is damaged: copy the engine again or recompile it");
  }
}

} // namespace llmc
