// A model with a team, a workspace and a KV pool, at the level of src/model: what
// the tests of this folder run passes on.
#ifndef SLUICE_TESTS_MODEL_LOADED_MODEL_H_
#define SLUICE_TESTS_MODEL_LOADED_MODEL_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/model/model.h"

namespace sluice {

inline Result<std::unique_ptr<Model>> LoadModel(const std::string& path, ThreadTeam& team) {
  ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::Open(path));
  return Model::Load(std::move(gguf), LoadMode::kGguf, Activations::kInt8, team);
}

class LoadedModel {
 public:
  LoadedModel(const std::string& path, size_t context, size_t largest_chunk,
              KvType kv_type = KvType::kF32) {
    team_ = *ThreadTeam::Create(1);
    Result<std::unique_ptr<Model>> m = LoadModel(path, *team_);
    if (!m.ok()) ADD_FAILURE() << m.status().message();
    model_ = *std::move(m);
    workspace_ = *Workspace::Create(config(), largest_chunk, 1, context);
    pool_ = *KvPool::Create(KvShapeOf(config(), kv_type),
                            KvPagesPerSequence(config(), context, largest_chunk));
  }

  const Config& config() const { return model_->config(); }
  const Model& model() const { return *model_; }
  KvPool& pool() { return *pool_; }

  // Adds the tokens to the sequence in passes of `chunk` rows; the logits after each.
  std::vector<std::vector<float>> Append(KvSequence& kv, std::span<const int32_t> tokens,
                                         size_t chunk) {
    const size_t vocab = config().vocab;
    std::vector<std::vector<float>> all;
    std::vector<int32_t> rows;
    for (size_t begin = 0; begin < tokens.size(); begin += rows.size()) {
      rows.resize(std::min(chunk, tokens.size() - begin));
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i);
      const Status s = kv.Reserve(rows.size());
      EXPECT_TRUE(s.ok()) << s.message();
      if (!s.ok()) return all;
      const BatchSegment segment{&kv, 0, rows.size(), static_cast<int32_t>(kv.length())};
      const size_t blocks = LogitBlocks(vocab);
      std::vector<float> logits(rows.size() * vocab), largest(rows.size() * blocks);
      model_->Forward(*team_, 0, *workspace_,
                      {tokens.subspan(begin, rows.size()), {&segment, 1}, rows},
                      {logits.data(), largest.data()});
      kv.Advance(rows.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        const float* l = logits.data() + i * vocab;
        all.emplace_back(l, l + vocab);
        std::vector<float> expected(blocks);
        LargestOfBlocks(all.back(), expected.data());
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), largest.data() + i * blocks));
      }
    }
    return all;
  }

 private:
  std::unique_ptr<ThreadTeam> team_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<KvPool> pool_;
};

}  // namespace sluice
#endif  // SLUICE_TESTS_MODEL_LOADED_MODEL_H_
