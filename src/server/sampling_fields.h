// The sampler's fields of a request, by the names that OpenAI, vLLM, llama-server
// and Ollama share. Any thread.
#ifndef SLUICE_SRC_SERVER_SAMPLING_FIELDS_H_
#define SLUICE_SRC_SERVER_SAMPLING_FIELDS_H_

#include "src/engine/sequence.h"
#include "src/server/fields.h"
#include "src/text/tokenizer.h"

namespace sluice {

// temperature top_k top_p min_p typical_p top_n_sigma xtc_* dynatemp_* repeat_last_n repeat_penalty
// (repetition_penalty) presence_penalty frequency_penalty dry_* samplers seed logit_bias ignore_eos
// min_tokens stop. What is absent stays as it is in `request`, which holds the dialect's defaults;
// a seed that is absent or negative is drawn. Errors are left in `fields`.
void ReadSampling(const Tokenizer& tokenizer, size_t vocab, Fields* fields, Request* request);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_SAMPLING_FIELDS_H_
