#include "check.h"
#include "sha256.h"

using namespace llmc;

static std::string hash(const std::string &text) {
  return sha256_hex(std::as_bytes(std::span(text)));
}

// FIPS 180-4 examples.
TEST(known_answers) {
  CHECK_EQ(hash(""),
           "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK_EQ(hash("abc"),
           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK_EQ(hash(std::string(1000000, 'a')),
           "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(pieces_give_the_same_as_the_whole) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += static_cast<char>(i * 31);
  for (size_t piece : {1, 55, 56, 63, 64, 65, 127}) {
    Sha256 sha;
    for (size_t at = 0; at < text.size(); at += piece)
      sha.update(std::as_bytes(
          std::span(text).subspan(at, std::min(piece, text.size() - at))));
    CHECK_EQ(sha.hex_digest(), hash(text));
  }
}

TEST_MAIN()
