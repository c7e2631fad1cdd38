#include "src/model/decoder.h"

#include "src/model/layers.h"
#include "src/model/ops.h"

namespace sluice {

namespace {

// x = x + attention(norm x); x = x + mlp(norm x)
void SequentialLayer(Pass& pass, size_t i, AttentionBlock attention) {
  const LayerWeights& w = pass.weights.layers[i];
  const Input in = pass.ws.norm_in.View(pass.rows(), pass.config.dim);
  float* branch = pass.ws.branch;

  NormRows(pass, pass.ws.x, w.attn_norm, in, AttentionReadsInt8(w));
  pass.Barrier();
  attention(pass, i, in);
  pass.Barrier();
  AddBranch(pass, branch, w.attn_post_norm);

  NormRows(pass, pass.ws.x, w.ffn_norm, in, FeedForwardReadsInt8(w));
  pass.Barrier();
  FeedForward(pass, i, in, branch);
  pass.Barrier();
  AddBranch(pass, branch, w.ffn_post_norm);
}

// x = x + attention(norm x) + mlp(norm' x); without a norm of its own the MLP reads the
// attention's.
void ParallelLayer(Pass& pass, size_t i, AttentionBlock attention) {
  const LayerWeights& w = pass.weights.layers[i];
  const Input in = pass.ws.norm_in.View(pass.rows(), pass.config.dim);

  NormRows(pass, pass.ws.x, w.attn_norm, in, AttentionReadsInt8(w) || FeedForwardReadsInt8(w));
  pass.Barrier();
  attention(pass, i, in);
  if (w.ffn_norm) {
    pass.Barrier();  // the attention has read `in`
    NormRows(pass, pass.ws.x, w.ffn_norm, in, FeedForwardReadsInt8(w));
    pass.Barrier();
  }
  FeedForward(pass, i, in, pass.ws.branch2);
  pass.Barrier();
  AddBranch(pass, pass.ws.branch, w.attn_post_norm);
  AddBranch(pass, pass.ws.branch2, w.ffn_post_norm);
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
