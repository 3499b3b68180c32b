#include "sampling_params.h"

#include "error.h"

#include <algorithm>

namespace llmc {

void check_and_normalise(SamplingParams &params, int vocab_size) {
  // Written so that NaN fails every test.
  if (params.max_tokens < 1)
    fail(LLMC_INVALID_ARGUMENT, "max_tokens must be at least 1, found ",
         params.max_tokens);
  if (!(params.temperature >= 0 && params.temperature <= 1e6f))
    fail(LLMC_INVALID_ARGUMENT,
         "temperature must be 0 (greedy) or a positive number, found ",
         params.temperature);
  if (!(params.top_p > 0 && params.top_p <= 1))
    fail(LLMC_INVALID_ARGUMENT, "top_p must be in (0, 1], found ",
         params.top_p);
  if (!(params.min_p >= 0 && params.min_p <= 1))
    fail(LLMC_INVALID_ARGUMENT, "min_p must be in [0, 1], found ",
         params.min_p);
  if (params.top_k < -1)
    fail(LLMC_INVALID_ARGUMENT,
         "top_k must be positive, or 0 or -1 for all, found ", params.top_k);
  for (int32_t id : params.stop_token_ids)
    if (id < 0 || id >= vocab_size)
      fail(LLMC_INVALID_ARGUMENT, "stop_token_ids: ", id,
           " is outside the vocabulary of ", vocab_size);
  if (params.top_k == -1 || params.top_k >= vocab_size)
    params.top_k = 0;
  if (params.temperature > 0)
    params.temperature = std::max(params.temperature, kMinTemperature);
}

} // namespace llmc
