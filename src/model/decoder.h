// The decoder most architectures share: what differs between them is data in
// Config and which weights are present.
#ifndef SLUICE_SRC_MODEL_DECODER_H_
#define SLUICE_SRC_MODEL_DECODER_H_

#include <cstddef>

#include "src/model/pass.h"

namespace sluice {

// Embedding to the last residual row: attention and MLP per layer, in sequence or in parallel.
void DecoderForward(Pass& pass);

// The same layers around another attention: writes ws.branch from the normed input.
using AttentionBlock = void (*)(Pass& pass, size_t layer, const Input& in);
void DecoderForward(Pass& pass, AttentionBlock attention);

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_DECODER_H_
