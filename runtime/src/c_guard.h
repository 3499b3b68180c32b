#pragma once
// What the files of the C API share: no exception leaves it.

#include "engine.h"
#include "error.h"
#include "llmc/llmc.h"

#include <exception>
#include <memory>
#include <new>

struct llmc_engine {
  std::unique_ptr<llmc::Engine> engine;
};

namespace llmc {

// Keeps the message for llmc_last_error() of this thread; returns `status`.
llmc_status record_error(llmc_status status, const char *message);

template <class F> llmc_status guarded(const F &body) {
  try {
    body();
    return LLMC_OK;
  } catch (const Error &error) {
    return record_error(error.status(), error.what());
  } catch (const std::bad_alloc &) {
    return record_error(LLMC_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception &error) {
    return record_error(LLMC_INTERNAL, error.what());
  } catch (...) {
    return record_error(LLMC_INTERNAL, "unknown exception");
  }
}

inline void require(bool condition, const char *message) {
  if (!condition)
    fail(LLMC_INVALID_ARGUMENT, message);
}

} // namespace llmc
