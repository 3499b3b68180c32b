#include "check.h"
#include "error.h"
#include "expr.h"

#include <nlohmann/json.hpp>

using namespace llmc;

static Expr parse(const char *text) {
  nlohmann::json document = nlohmann::json::parse(text);
  return Expr::parse(JsonView(document, "plan.json: grid"));
}

static const Sizes kSizes{.T = 100, .S = 7, .R = 3, .NB = 50, .B = 32};

TEST(integers_and_sizes) {
  CHECK_EQ(parse("42").evaluate(kSizes), 42);
  CHECK_EQ(parse("-3").evaluate(kSizes), -3);
  CHECK_EQ(parse("\"T\"").evaluate(kSizes), 100);
  CHECK_EQ(parse("\"S\"").evaluate(kSizes), 7);
  CHECK_EQ(parse("\"R\"").evaluate(kSizes), 3);
  CHECK_EQ(parse("\"NB\"").evaluate(kSizes), 50);
  CHECK_EQ(parse("\"B\"").evaluate(kSizes), 32);
}

TEST(operators) {
  CHECK_EQ(parse(R"(["add", "T", 5])").evaluate(kSizes), 105);
  CHECK_EQ(parse(R"(["sub", "S", "R"])").evaluate(kSizes), 4);
  CHECK_EQ(parse(R"(["mul", "T", "S"])").evaluate(kSizes), 700);
  CHECK_EQ(parse(R"(["ceildiv", "T", 64])").evaluate(kSizes), 2);
  CHECK_EQ(parse(R"(["ceildiv", 128, 64])").evaluate(kSizes), 2);
  CHECK_EQ(parse(R"(["ceildiv", 0, 64])").evaluate(kSizes), 0);
  CHECK_EQ(parse(R"(["min", "T", 64])").evaluate(kSizes), 64);
  CHECK_EQ(parse(R"(["max", "T", 64])").evaluate(kSizes), 100);
}

TEST(nesting_evaluates_left_operand_first) {
  CHECK_EQ(
      parse(R"(["sub", ["mul", "S", 10], ["ceildiv", ["add", "T", "R"], 2]])")
          .evaluate(kSizes),
      70 - 52);
}

TEST(step_dependence) {
  CHECK(!parse(R"(["mul", "NB", "B"])").depends_on_step());
  CHECK(parse(R"(["mul", "NB", "R"])").depends_on_step());
}

TEST(unknown_size_is_refused) {
  CHECK_EQ(THROWN(Error, parse("\"Q\"")),
           "plan.json: grid: expected a size name (T S R NB B), found \"Q\"; "
           "the engine is "
           "damaged or comes from another compiler version: recompile it");
}
TEST(unknown_operator_is_refused) {
  CHECK(THROWN(Error, parse(R"(["pow", 1, 2])"))
            .find("plan.json: grid[0]: expected an operator") == 0);
}
TEST(wrong_arity_is_refused) {
  CHECK(THROWN(Error, parse(R"(["add", 1])")).find("[op, a, b]") !=
        std::string::npos);
}
TEST(fractions_are_refused) {
  CHECK(THROWN(Error, parse("1.5")).find("found 1.5") != std::string::npos);
}
TEST(bottomless_nesting_is_refused) {
  std::string text = "1";
  for (int i = 0; i < 100; ++i)
    text = "[\"add\", 1, " + text + "]";
  CHECK(THROWN(Error, parse(text.c_str())).find("levels deep") !=
        std::string::npos);
}
TEST(deepest_allowed_nesting_evaluates) {
  std::string right = "1", left = "1";
  for (int i = 0; i < 15; ++i)
    right = "[\"add\", 1, " + right + "]", left = "[\"add\", " + left + ", 1]";
  CHECK_EQ(parse(right.c_str()).evaluate(kSizes), 16);
  CHECK_EQ(parse(left.c_str()).evaluate(kSizes), 16);
}
TEST(division_by_zero_is_an_error) {
  CHECK(THROWN(Error, parse(R"(["ceildiv", 1, 0])").evaluate(kSizes))
            .find("ceildiv by 0") != std::string::npos);
}
TEST(overflow_is_an_error) {
  CHECK(THROWN(Error,
               parse(R"(["mul", 9000000000000000000, "T"])").evaluate(kSizes))
            .find("overflows") != std::string::npos);
}

TEST_MAIN()
