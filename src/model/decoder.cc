#include "src/model/decoder.h"

#include "src/model/layers.h"
#include "src/model/ops.h"

namespace sluice {

namespace {

// x = x + attention(norm x); x = x + mlp(norm x)
void SequentialLayer(Pass& pass, size_t i, AttentionBlock attention) {
  const LayerWeights& w = pass.weights.layers[i];
  const Input in = pass.own.norm_in.View(pass.rows(), pass.config.dim);

  NormRows(pass, pass.own.x, w.attn_norm, in, AttentionReads(w));
  pass.RowBarrier();
  attention(pass, i, in);
  pass.Barrier();
  AddBranch(pass, pass.ws.branch, w.attn_post_norm);

  NormRows(pass, pass.own.x, w.ffn_norm, in, FeedForwardReads(w));
  pass.RowBarrier();
  AddBranch(pass, FeedForward(pass, i, in, pass.ws.branch), w.ffn_post_norm);
}

// x = x + attention(norm x) + mlp(norm' x); without a norm of its own the MLP reads the
// attention's.
void ParallelLayer(Pass& pass, size_t i, AttentionBlock attention) {
  const LayerWeights& w = pass.weights.layers[i];
  const Input in = pass.own.norm_in.View(pass.rows(), pass.config.dim);

  NormRows(pass, pass.own.x, w.attn_norm, in, AttentionReads(w) | FeedForwardReads(w));
  pass.RowBarrier();
  attention(pass, i, in);
  if (w.ffn_norm) {
    pass.RowBarrier();  // the attention has read `in`
    NormRows(pass, pass.own.x, w.ffn_norm, in, FeedForwardReads(w));
    pass.RowBarrier();
  }
  const float* branch = FeedForward(pass, i, in, pass.ws.branch2);
  AddBranch(pass, pass.ws.branch, w.attn_post_norm);
  AddBranch(pass, branch, w.ffn_post_norm);
}

}  // namespace

void DecoderForward(Pass& pass, AttentionBlock attention) {
  Embed(pass);
  FillRope(pass);
  for (size_t i = 0; i < pass.config.layers; ++i) {
    if (pass.config.parallel_residual) {
      ParallelLayer(pass, i, attention);
    } else {
      SequentialLayer(pass, i, attention);
    }
  }
}

void DecoderForward(Pass& pass) { DecoderForward(pass, SelfAttention); }

}  // namespace sluice
