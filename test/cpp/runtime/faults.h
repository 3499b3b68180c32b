#pragma once
// What the tests of faults share.

#include "fake_gpu.h"
#include "null_runner.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace llmc::test {

template <class T> std::string health(const T &engine) {
  try {
    engine.check_health();
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

// Ends with an error and has the beginning of `right` until then.
inline std::string failure_of(RequestStream &stream, const Tokens &right) {
  Tokens got;
  try {
    llmc_finish finish = LLMC_RUNNING;
    while (finish == LLMC_RUNNING) {
      llmc_token token;
      if (stream.next(&token, 1, 30, finish))
        got.push_back(token.id);
    }
    CHECK(false); // no error
    return "";
  } catch (const Error &error) {
    CHECK(got.size() <= right.size());
    CHECK(std::equal(got.begin(), got.end(), right.begin()));
    return error.what();
  }
}

inline Tokens output_of(const std::string &path, const Tokens &prompt,
                        int count) {
  return read_all(*Engine::load(path, options())
                       ->submit(prompt, greedy(count), nullptr, nullptr));
}

inline std::shared_ptr<Request>
make_request(Executor &executor, int prompt, int output,
             llmc_token_callback callback = nullptr, void *user = nullptr) {
  auto request = std::make_shared<Request>();
  request->sequence.tokens.assign(static_cast<size_t>(prompt), 1);
  request->sequence.num_prompt_tokens = prompt;
  request->params.ignore_eos = true;
  request->max_total_tokens = prompt + output;
  request->stream =
      std::make_shared<RequestStream>(callback, user, executor.attention());
  return request;
}

void wait_until(const auto &condition) {
  while (!condition())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

} // namespace llmc::test
