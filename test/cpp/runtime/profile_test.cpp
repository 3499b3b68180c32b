// Profiles of a step: on the host for real, and on the stand-in for libcuda.
#include "fake_gpu.h"
#include "load_model.h"

using namespace llmc;
using namespace llmc::test;

namespace {

std::string refusal(ModelRunner &runner, int sequences, int tokens,
                    int context) {
  try {
    runner.profile(sequences, tokens, context, 1);
  } catch (const Error &error) {
    CHECK_EQ(error.status(), LLMC_INVALID_ARGUMENT);
    return error.what();
  }
  return "";
}

} // namespace

TEST(a_host_step_is_timed_by_kernel) {
  ToyEngine toy;
  LoadedModel model = load_model(toy.path(), llmc_engine_options_default());
  StepProfile profile = model.runner->profile(2, 1, 20, 3);
  CHECK(profile.seconds > 0);
  CHECK(!profile.kernels.empty());
  for (const KernelTime &time : profile.kernels) {
    CHECK(time.seconds > 0);
    CHECK(time.num_launches >= 1);
    CHECK(time.chain_seconds < profile.seconds * 2);
  }
  CHECK(model.runner->copy_bandwidth() > 1e8);
}

TEST(every_launch_of_the_step_is_in_the_profile) {
  ToyEngine toy(for_gpu);
  {
    LoadedModel model = load_model(toy.path(), options());
    int64_t before = cuda().launches;
    StepProfile profile = model.runner->profile(3, 2, 9, 2);
    int launches = 0;
    for (const KernelTime &time : profile.kernels)
      launches += time.num_launches;
    CHECK_EQ(launches, 2); // of the toy's plan
    CHECK(profile.seconds > 0);
    CHECK(cuda().launches - before > 2 * 256); // graphs hold many passes
  }
  check_nothing_leaked();
}

TEST(what_a_step_cannot_hold_is_refused_with_numbers) {
  ToyEngine toy(for_gpu);
  LoadedModel model = load_model(toy.path(), options());
  CHECK(has(refusal(*model.runner, 0, 1, 1), "found 0, 1 and 1"));
  CHECK(has(refusal(*model.runner, 1, 4, 3), "found 1, 4 and 3"));
  CHECK(has(refusal(*model.runner, 9, 1, 1), "max_batch_size 8"));
  CHECK(has(refusal(*model.runner, 4, 9, 9), "max_num_tokens 32"));
  CHECK(has(refusal(*model.runner, 1, 1, 1 << 20), "max_seq_len"));
}

TEST(a_device_that_fails_while_timing_says_so) {
  ToyEngine toy(for_gpu);
  {
    LoadedModel model = load_model(toy.path(), options());
    cuda().fail_function = "cuEventElapsedTime";
    cuda().fail_result = 1;
    cuda().fail_after = 0;
    std::string message;
    try {
      model.runner->profile(1, 1, 4, 1);
    } catch (const Error &error) {
      message = error.what();
    }
    cuda().fail_function = nullptr;
    CHECK(has(message, "cannot read the time between two events"));
  }
  check_nothing_leaked();
}

TEST_MAIN()
