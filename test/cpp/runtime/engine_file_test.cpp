// Engines that must not load: each gives one error that says what to do.
#include "check.h"
#include "engine.h"
#include "error.h"
#include "toy_engine.h"

using namespace llmc;
using nlohmann::json;
using test::ToyEngine;

namespace {

struct Failure {
  llmc_status status;
  std::string message;
  bool says(const char *text) const {
    bool found = message.find(text) != std::string::npos;
    if (!found)
      std::printf("  no \"%s\" in: %s\n", text, message.c_str());
    return found;
  }
};

Failure load(const std::string &path,
             llmc_engine_options options = llmc_engine_options_default()) {
  try {
    Engine::load(path, options);
  } catch (const Error &error) {
    return {error.status(), error.what()};
  }
  CHECK(!"the engine loaded");
  return {LLMC_OK, ""};
}

} // namespace

TEST(no_engine_there) {
  Failure failure = load("/nonexistent/engine");
  CHECK_EQ(failure.status, LLMC_NOT_FOUND);
  CHECK(failure.says("no engine at /nonexistent/engine"));
}

TEST(a_folder_that_is_no_engine) {
  ToyEngine toy;
  std::filesystem::remove(toy.file("manifest.json"));
  Failure failure = load(toy.path());
  CHECK_EQ(failure.status, LLMC_NOT_FOUND);
  CHECK(failure.says("no manifest.json") && failure.says("llmc compile"));
}

TEST(a_file_that_is_no_archive) {
  ToyEngine toy;
  Failure failure = load(toy.file("plan.json").string());
  CHECK_EQ(failure.status, LLMC_BAD_ENGINE);
  CHECK(failure.says("not an engine archive"));
}

TEST(newer_and_older_format_versions) {
  for (int version : {0, 2, 77}) {
    // Another version may lack everything else: only the version is looked at.
    ToyEngine toy([&](json &manifest, json &) {
      manifest["format_version"] = version, manifest.erase("limits");
    });
    Failure failure = load(toy.path());
    CHECK_EQ(failure.status, LLMC_UNSUPPORTED);
    CHECK(failure.says(("format version " + std::to_string(version)).c_str()));
    CHECK(failure.says("this runtime reads version 1"));
    CHECK(failure.says("recompile"));
  }
}

TEST(another_processor_family) {
  ToyEngine toy(
      [](json &manifest, json &) { manifest["target"]["arch"] = "riscv64"; });
  Failure failure = load(toy.path());
  CHECK_EQ(failure.status, LLMC_UNSUPPORTED);
  CHECK(failure.says("riscv64") && failure.says("llmc compile --target host"));
}

TEST(missing_cpu_features_are_listed) {
  // AMX is refused on every machine, listed or not.
  ToyEngine toy([](json &manifest, json &) {
    manifest["target"]["features"] = {"amx-tile", "no-such-feature"};
  });
  Failure failure = load(toy.path());
  CHECK_EQ(failure.status, LLMC_UNSUPPORTED);
  CHECK(failure.says(" amx-tile no-such-feature;"));
}

TEST(gpu_engine_without_a_driver) {
  ToyEngine toy([](json &manifest, json &plan) {
    manifest["target"] = {
        {"name", "sm_90"}, {"arch", "sm_90a"}, {"features", json::array()}};
    plan["code"][0]["kind"] = "cubin";
  });
  llmc_engine_options options = llmc_engine_options_default();
  options.cuda_library = "libcuda-that-does-not-exist.so";
  Failure failure = load(toy.path(), options);
  CHECK_EQ(failure.status, LLMC_UNSUPPORTED);
  CHECK(failure.says("libcuda-that-does-not-exist.so") &&
        failure.says("--target host"));
}

TEST(stripped_engine) {
  ToyEngine toy([](json &manifest, json &) {
    manifest["weights"]["bound"] = false;
    manifest["weights"]["tensors"][0]["sha256"] = nullptr;
  });
  std::filesystem::remove(toy.file("weights.safetensors"));
  Failure failure = load(toy.path());
  CHECK_EQ(failure.status, LLMC_STRIPPED);
  CHECK(failure.says("llmc refit"));
}

TEST(damaged_plan) {
  ToyEngine toy;
  toy.flip_byte("plan.json", 10);
  Failure failure = load(toy.path());
  CHECK_EQ(failure.status, LLMC_BAD_ENGINE);
  CHECK(failure.says("plan.json: expected sha256") && failure.says("found") &&
        failure.says("copy the engine again"));
}

TEST(damaged_code) {
  ToyEngine toy;
  toy.flip_byte("kernels/host.so", 3000);
  CHECK(load(toy.path()).says("kernels/host.so: expected sha256"));
}

TEST(truncated_parts) {
  for (const char *part :
       {"plan.json", "kernels/host.so", "weights.safetensors"}) {
    ToyEngine toy;
    toy.truncate(part, 5);
    Failure failure = load(toy.path());
    CHECK_EQ(failure.status, LLMC_BAD_ENGINE);
    CHECK(failure.says(part) && failure.says("truncated"));
  }
}

TEST(truncated_manifest) {
  ToyEngine toy;
  toy.truncate("manifest.json", 5);
  Failure failure = load(toy.path());
  CHECK_EQ(failure.status, LLMC_BAD_ENGINE);
  CHECK(failure.says("manifest.json: not valid JSON"));
}

TEST(missing_part) {
  ToyEngine toy;
  std::filesystem::remove(toy.file("kernels/host.so"));
  Failure failure = load(toy.path());
  CHECK_EQ(failure.status, LLMC_BAD_ENGINE);
  CHECK(failure.says("incomplete") && failure.says("kernels/host.so"));
}

TEST(parts_outside_the_engine_are_refused) {
  for (const char *path : {"../../etc/passwd", "/etc/passwd", ""}) {
    ToyEngine toy([&](json &manifest, json &) {
      manifest["parts"].push_back(
          {{"path", path}, {"bytes", 1}, {"sha256", std::string(64, 'a')}});
    });
    CHECK(load(toy.path()).says("a relative path inside the engine"));
  }
}

TEST(damaged_weights_are_found_unless_told_not_to_look) {
  ToyEngine toy;
  toy.flip_byte("weights.safetensors", 6);
  Failure failure = load(toy.path());
  CHECK_EQ(failure.status, LLMC_BAD_ENGINE);
  CHECK(failure.says("tensor bias") && failure.says("llmc refit"));
  llmc_engine_options options = llmc_engine_options_default();
  options.verify_weights = LLMC_VERIFY_NEVER;
  CHECK(Engine::load(toy.path(), options) != nullptr);
}

TEST(weights_that_differ_from_the_manifest) {
  ToyEngine shape([](json &manifest, json &) {
    manifest["weights"]["tensors"][0]["shape"] = {8, 8};
  });
  CHECK(load(shape.path())
            .says("tensor bias: expected f32 [8, 8], found f32 [64]"));
  ToyEngine missing([](json &manifest, json &) {
    manifest["weights"]["tensors"].push_back({{"name", "gone"},
                                              {"dtype", "f32"},
                                              {"shape", {1}},
                                              {"sha256", nullptr}});
  });
  CHECK(load(missing.path()).says("tensor gone is missing"));
  ToyEngine extra([](json &manifest, json &plan) {
    manifest["weights"]["tensors"] = json::array();
    for (auto &range : plan["ranges"])
      range["launches"][1]["args"][7] = {{"buffer", 0}};
  });
  CHECK(Engine::load(extra.path(), llmc_engine_options_default()) !=
        nullptr); // nothing reads the file
}

TEST(kernel_that_the_code_lacks) {
  ToyEngine toy(
      [](json &, json &plan) { plan["kernels"][0]["entry"] = "toy_gone"; });
  Failure failure = load(toy.path());
  CHECK_EQ(failure.status, LLMC_BAD_ENGINE);
  CHECK(failure.says("kernel append") && failure.says("toy_gone"));
}

TEST(limits_that_contradict_each_other) {
  ToyEngine toy(
      [](json &manifest, json &) { manifest["limits"]["max_seq_len"] = 129; });
  CHECK(load(toy.path())
            .says("max_blocks_per_seq: expected at least ceildiv(max_seq_len = "
                  "129, block_size = 4)"));
}

TEST(options_out_of_range) {
  ToyEngine toy;
  llmc_engine_options options = llmc_engine_options_default();
  options.max_batch_size = 9;
  CHECK(load(toy.path(), options)
            .says("max_batch_size 9 is above the engine's limit 8"));
  options = llmc_engine_options_default();
  options.kv_cache_tokens = -1;
  CHECK_EQ(load(toy.path(), options).status, LLMC_INVALID_ARGUMENT);
  options = llmc_engine_options_default();
  options.free_memory_fraction = 1.5;
  CHECK(
      load(toy.path(), options).says("free_memory_fraction must be in [0, 1]"));
}

TEST(kv_pool_arithmetic) {
  Limits limits{.max_batch_size = 4,
                .max_num_tokens = 64,
                .max_seq_len = 100,
                .block_size = 16,
                .max_blocks_per_seq = 7};
  auto size = [&](KvCacheOptions options, size_t free) {
    return size_kv_cache(limits, 1000, options, free, 0.5);
  };
  CHECK_EQ(size({}, 1000000), 29); // all 4 sequences at full length and block 0
  CHECK_EQ(size({}, 20000), 10);   // half of the free memory
  CHECK_EQ(size({.tokens = 33}, 1000000), 4);    // 3 blocks and block 0
  CHECK_EQ(size({.bytes = 12000}, 1000000), 12); // block 0 counts in bytes
  CHECK_EQ(size({.free_memory_fraction = 0.9}, 20000), 18);
  CHECK(THROWN(Error, size({}, 1000)).find("does not fit") !=
        std::string::npos);
  CHECK(THROWN(Error, size({.tokens = 400}, 5000)).find("free: 5000 bytes") !=
        std::string::npos);
}

TEST_MAIN()
