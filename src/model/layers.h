// The blocks of a decoder layer, written in ops. Every worker of a pass calls
// them; each begins after a barrier and ends before one that its caller sets.
#ifndef SLUICE_SRC_MODEL_LAYERS_H_
#define SLUICE_SRC_MODEL_LAYERS_H_

#include <cstddef>

#include "src/model/pass.h"

namespace sluice {

// Reads in (already normed, in the forms that its weights read); writes ws.branch.
void SelfAttention(Pass& pass, size_t layer, const Input& in);
// down(activation(gate(in)) * up(in)) into out [rows][dim].
void GatedMlp(Pass& pass, const LayerWeights& layer, const Input& in, float* out);
// Each row goes through its chosen experts, weighed and summed, plus the shared expert; own rows,
// into branch. Ends behind a barrier of its own.
void MixtureOfExperts(Pass& pass, const LayerWeights& layer, const Input& in, float* branch);
// The layer's MLP, in `out`, or its mixture, in own.branch; ends behind a barrier. Returns where
// the result is: own rows may be read.
const float* FeedForward(Pass& pass, size_t layer, const Input& in, float* out);

// The forms of their input that a layer's attention / feed-forward weights read.
InputForms AttentionReads(const LayerWeights& layer);
InputForms FeedForwardReads(const LayerWeights& layer);

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_LAYERS_H_
