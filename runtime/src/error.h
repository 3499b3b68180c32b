#pragma once
// The one exception type of the runtime. The C API turns it into a status code
// and a message.

#include "llmc/llmc.h"

#include <sstream>
#include <stdexcept>
#include <string>

namespace llmc {

class Error : public std::runtime_error {
public:
  Error(llmc_status status, const std::string &message)
      : std::runtime_error(message), status_(status) {}
  llmc_status status() const { return status_; }

private:
  llmc_status status_;
};

template <class... Parts> std::string concat(const Parts &...parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Messages say what was expected, what was found and what to do about it.
template <class... Parts>
[[noreturn]] void fail(llmc_status status, const Parts &...parts) {
  throw Error(status, concat(parts...));
}

} // namespace llmc
