// The plan parser: the toy plan is good, each kind of damage is named.
#include "check.h"
#include "error.h"
#include "plan.h"
#include "toy_engine.h"

using namespace llmc;
using nlohmann::json;

namespace {

struct Documents {
  json manifest =
      json::parse(test::read_file(LLMC_TOY_FOLDER "/manifest.json"));
  json plan = json::parse(test::read_file(LLMC_TOY_FOLDER "/plan.json"));

  Documents() {
    manifest["weights"]["tensors"] = {{{"name", "bias"},
                                       {"dtype", "f32"},
                                       {"shape", {64}},
                                       {"sha256", nullptr}}};
    manifest["parts"] = {{{"path", "kernels/host.so"},
                          {"bytes", 1},
                          {"sha256", std::string(64, '0')}}};
  }
  Plan parse() const {
    std::string manifest_text = manifest.dump(), plan_text = plan.dump();
    return parse_plan(std::as_bytes(std::span(plan_text)),
                      parse_manifest(std::as_bytes(std::span(manifest_text))));
  }
};

// Edits the good documents and returns the message of the refusal.
template <class F> std::string refusal(F &&edit) {
  Documents documents;
  edit(documents);
  return THROWN(Error, documents.parse());
}

bool has(const std::string &message, const char *text) {
  bool found = message.find(text) != std::string::npos;
  if (!found)
    std::printf("  no \"%s\" in: %s\n", text, message.c_str());
  return found;
}

} // namespace

TEST(the_toy_plan_is_read) {
  Plan plan = Documents().parse();
  CHECK_EQ(plan.block_size, 4);
  CHECK_EQ(plan.kv_layers.size(), 1);
  CHECK_EQ(plan.kv_bytes_per_block(), 2 * 4 * (2 + 1) * 4);
  CHECK_EQ(plan.max_logit_rows, 8);
  CHECK_EQ(plan.ranges.size(), 2);
  CHECK_EQ(plan.ranges[1].launches[0].grid[0].evaluate({.T = 5}), 3);
  CHECK_EQ(plan.kernels[2].entry, "toy_logits");
  CHECK(!plan.next_tokens);
}

TEST(missing_member) {
  CHECK(has(refusal([](auto &d) { d.plan.erase("ranges"); }),
            "plan.json: : expected a member \"ranges\"") ||
        has(refusal([](auto &d) { d.plan.erase("ranges"); }),
            "expected a member \"ranges\""));
}
TEST(other_plan_version) {
  CHECK(has(refusal([](auto &d) { d.plan["plan_version"] = 2; }),
            "plan_version"));
}
TEST(block_size_against_the_manifest) {
  CHECK(has(refusal([](auto &d) { d.plan["kv_cache"]["block_size"] = 8; }),
            "the manifest's block_size 4, found 8"));
}
TEST(unknown_dtype) {
  CHECK(has(
      refusal([](auto &d) { d.plan["arena"]["buffers"][0]["dtype"] = "f99"; }),
      "arena.buffers[0].dtype: expected a dtype"));
}
TEST(unaligned_buffer) {
  CHECK(has(
      refusal([](auto &d) { d.plan["arena"]["buffers"][1]["offset"] = 500; }),
      "a multiple of 256, found 500"));
}
TEST(buffer_outside_the_arena) {
  CHECK(has(refusal([](auto &d) { d.plan["arena"]["bytes"] = 2048; }),
            "inside the arena of 2048 bytes"));
}
TEST(buffer_offset_that_overflows) {
  CHECK(has(refusal([](auto &d) {
              d.plan["arena"]["buffers"][1]["offset"] = 9223372036854775552;
            }),
            "inside the arena"));
}
TEST(buffer_smaller_than_its_shape) {
  CHECK(has(refusal([](auto &d) {
              d.plan["arena"]["buffers"][0]["shape"] = {"T", 2};
            }),
            "at least 256"));
}
TEST(buffer_of_a_narrow_range_may_be_small) {
  Documents documents; // 3 tokens at most touch it
  documents.plan["arena"]["buffers"].push_back({{"name", "w"},
                                                {"dtype", "f32"},
                                                {"shape", {"T", 4}},
                                                {"offset", 256},
                                                {"bytes", 48}});
  documents.plan["ranges"][0]["launches"][0]["args"][5] = {{"buffer", 2}};
  CHECK_EQ(documents.parse().buffers.size(), 3);
}
TEST(unknown_input) {
  CHECK(has(refusal([](auto &d) { d.plan["inputs"][0]["name"] = "tokenz"; }),
            "the name of a step input, found \"tokenz\""));
}
TEST(input_of_another_shape) {
  CHECK(has(refusal([](auto &d) { d.plan["inputs"][3]["shape"] = {"S"}; }),
            "inputs[3].shape"));
}
TEST(input_of_another_dtype) {
  CHECK(has(refusal([](auto &d) { d.plan["inputs"][0]["dtype"] = "i64"; }),
            "expected i32"));
}
TEST(logits_that_are_not_f32) {
  CHECK(has(
      refusal([](auto &d) { d.plan["arena"]["buffers"][1]["dtype"] = "bf16"; }),
      "an f32 buffer of rows of 64 logits"));
}
TEST(code_that_is_no_part) {
  CHECK(
      has(refusal([](auto &d) { d.plan["code"][0]["path"] = "kernels/x.so"; }),
          "the path of a part"));
}
TEST(code_of_another_target) {
  CHECK(has(refusal([](auto &d) { d.plan["code"][0]["kind"] = "cubin"; }),
            "\"host\" for target host"));
}
TEST(kernel_of_unknown_code) {
  CHECK(has(refusal([](auto &d) { d.plan["kernels"][0]["code"] = 1; }),
            "kernels[0].code"));
}
TEST(ranges_with_a_gap) {
  CHECK(has(refusal([](auto &d) { d.plan["ranges"][1]["min_tokens"] = 5; }),
            "min_tokens: expected 4"));
}
TEST(ranges_that_overlap) {
  CHECK(has(refusal([](auto &d) { d.plan["ranges"][1]["min_tokens"] = 3; }),
            "min_tokens: expected 4"));
}
TEST(ranges_that_end_too_early) {
  CHECK(has(refusal([](auto &d) { d.plan["ranges"][1]["max_tokens"] = 31; }),
            "up to max_num_tokens 32"));
}
TEST(launch_of_an_unknown_kernel) {
  CHECK(has(refusal([](auto &d) {
              d.plan["ranges"][0]["launches"][0]["kernel"] = 3;
            }),
            "an integer from 0 to 2, found 3"));
}
TEST(argument_of_no_kind) {
  CHECK(has(refusal([](auto &d) {
              d.plan["ranges"][0]["launches"][0]["args"][0] = {{"bufer", 0}};
            }),
            "launches[0].args[0]"));
}
TEST(argument_of_an_unknown_weight) {
  CHECK(has(refusal([](auto &d) {
              d.plan["ranges"][0]["launches"][1]["args"][7] = {{"weight", "x"}};
            }),
            "the name of a weight"));
}
TEST(argument_of_an_input_that_is_not_listed) {
  CHECK(has(refusal([](auto &d) { d.plan["inputs"].erase(0); }),
            "one of the plan's inputs"));
}
TEST(argument_of_an_unknown_layer) {
  CHECK(has(refusal([](auto &d) {
              d.plan["ranges"][0]["launches"][0]["args"][3]["layer"] = 1;
            }),
            "args[3].layer"));
}
TEST(tensor_map_on_the_host) {
  CHECK(has(refusal([](auto &d) {
              d.plan["ranges"][0]["launches"][0]["args"][0] = {
                  {"tensor_map", json::object()}};
            }),
            "no tensor map in a host engine"));
}
TEST(text_that_is_no_json) {
  std::string text = "{\"plan_version\": 1,";
  CHECK(
      has(THROWN(Error, parse_plan(std::as_bytes(std::span(text)), Manifest{})),
          "not valid JSON"));
}

TEST(tensor_maps_are_read) {
  Documents documents;
  documents.manifest["target"] = {{"name", "sm_90"}, {"arch", "sm_90a"}};
  documents.plan["code"][0]["kind"] = "cubin";
  json map = {{"base", {{"kv", "k"}, {"layer", 0}}},
              {"dtype", "bf16"},
              {"shape", {64, {"mul", "NB", 4}}},
              {"strides", {128}},
              {"box", {64, 128}},
              {"swizzle", 128},
              {"l2_promotion", 256},
              {"fill", "zero"}};
  auto with = [&](const char *key, json value) {
    Documents changed = documents;
    json edited = map;
    if (key)
      edited[key] = std::move(value);
    changed.plan["ranges"][0]["launches"][0]["args"][0] = {
        {"tensor_map", edited}};
    return changed;
  };
  Plan plan = with(nullptr, {}).parse();
  const auto &read = std::get<TensorMapArg>(plan.ranges[0].launches[0].args[0]);
  CHECK_EQ(read.shape[1].evaluate({.NB = 10}), 40);
  CHECK_EQ(read.swizzle, 128);
  CHECK(has(THROWN(Error, with("shape", {64, "T"}).parse()),
            "without T, S and R"));
  CHECK(has(THROWN(Error, with("box", {64}).parse()),
            "2 dimensions, as in shape"));
  CHECK(
      has(THROWN(Error, with("strides", json::array()).parse()), "1 strides"));
  CHECK(has(THROWN(Error, with("swizzle", 48).parse()), "swizzle"));
}

TEST_MAIN()
