#include "prefix_cache.h"

#include <algorithm>
#include <bit>

namespace llmc {

namespace {

// A lookup compares with so many blocks that begin alike, the youngest ones.
constexpr int kMaxSiblings = 32;

// The finaliser of splitmix64.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

} // namespace

PrefixCache::PrefixCache(int num_blocks, int block_size)
    : block_size_(static_cast<size_t>(block_size)),
      nodes_(static_cast<size_t>(num_blocks)),
      tokens_(static_cast<size_t>(num_blocks) * block_size_),
      buckets_(std::bit_ceil(static_cast<size_t>(num_blocks)), 0),
      sibling_buckets_(buckets_.size(), 0) {}

size_t PrefixCache::bucket(ContentId parent, uint64_t salt,
                           std::span<const int32_t> tokens) const {
  // One multiplication a token: whole batches fill a block in the same step.
  // Equal hashes cost a comparison and nothing else.
  uint64_t hash = mix(parent + 0x9e3779b97f4a7c15) ^ salt;
  for (int32_t token : tokens) {
    hash = (hash ^ static_cast<uint32_t>(token)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return static_cast<size_t>(mix(hash)) & (buckets_.size() - 1);
}

PrefixCache::Entry PrefixCache::find(ContentId parent, uint64_t salt,
                                     std::span<const int32_t> tokens) const {
  return find(bucket(parent, salt, tokens), parent, salt, tokens);
}

PrefixCache::Entry PrefixCache::find(size_t bucket, ContentId parent,
                                     uint64_t salt,
                                     std::span<const int32_t> tokens) const {
  BlockId block = buckets_[bucket];
  for (; block != 0; block = nodes_[static_cast<size_t>(block)].next) {
    const Node &node = nodes_[static_cast<size_t>(block)];
    if (node.parent == parent && node.salt == salt &&
        std::ranges::equal(tokens_of(block), tokens))
      return {block, node.content};
  }
  return {};
}

PrefixCache::Beginning
PrefixCache::find_beginning(ContentId parent, uint64_t salt,
                            std::span<const int32_t> tokens) const {
  Beginning best;
  if (tokens.empty())
    return best;
  BlockId block = sibling_buckets_[sibling_bucket(parent, salt, tokens[0])];
  for (int left = kMaxSiblings; block != 0 && left > 0;
       block = nodes_[static_cast<size_t>(block)].next_sibling, --left) {
    const Node &node = nodes_[static_cast<size_t>(block)];
    if (node.parent != parent || node.salt != salt)
      continue;
    std::span<const int32_t> known = tokens_of(block);
    auto same = static_cast<int>(std::ranges::mismatch(known, tokens).in1 -
                                 known.begin());
    if (same > best.num_tokens)
      best = {block, same};
  }
  return best;
}

PrefixCache::Entry PrefixCache::insert(ContentId parent, uint64_t salt,
                                       std::span<const int32_t> tokens,
                                       BlockId block) {
  size_t place = bucket(parent, salt, tokens);
  if (Entry known = find(place, parent, salt, tokens); known.block != 0)
    return known;
  forget(block);
  BlockId &head = buckets_[place];
  BlockId &sibling = sibling_buckets_[sibling_bucket(parent, salt, tokens[0])];
  nodes_[static_cast<size_t>(block)] = {next_content_, parent, salt, head,
                                        sibling};
  head = sibling = block;
  std::ranges::copy(tokens, tokens_.begin() +
                                static_cast<ptrdiff_t>(
                                    static_cast<size_t>(block) * block_size_));
  return {block, next_content_++};
}

void PrefixCache::forget(BlockId block) {
  Node &node = nodes_[static_cast<size_t>(block)];
  if (node.content == 0)
    return;
  std::span<const int32_t> tokens = tokens_of(block);
  auto unlink = [&](BlockId *link, BlockId Node::*next) {
    while (*link != block)
      link = &(nodes_[static_cast<size_t>(*link)].*next);
    *link = node.*next;
  };
  unlink(&buckets_[bucket(node.parent, node.salt, tokens)], &Node::next);
  unlink(&sibling_buckets_[sibling_bucket(node.parent, node.salt, tokens[0])],
         &Node::next_sibling);
  node = {};
}

void PrefixCache::forget_all() {
  std::ranges::fill(nodes_, Node{});
  std::ranges::fill(buckets_, 0);
  std::ranges::fill(sibling_buckets_, 0);
}

} // namespace llmc
