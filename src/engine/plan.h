// What a model needs and how fast it will be, before it is loaded: memory, and a
// run of the engine's own schedule in which each pass takes the time that
// src/engine/time_model predicts. Used by `sluice plan`; any thread.
#ifndef SLUICE_SRC_ENGINE_PLAN_H_
#define SLUICE_SRC_ENGINE_PLAN_H_

#include <cstddef>

#include "src/base/status.h"
#include "src/engine/time_model.h"

namespace sluice {

// `concurrency` requests that arrive at once, each `prompt` tokens long, each with `output` tokens
// to generate.
struct Workload {
  size_t prompt = 512, output = 128;
  size_t concurrency = 1;
  size_t max_sequences = 0;  // run at once; 0: all of them
  size_t context = 0;        // --ctx-size; 0: prompt + output
  size_t chunk = 512;        // most rows of a pass
  double max_stall_s = 0;    // 0: prompts take whole passes (`run`)
  KvType kv_type = KvType::kF16;

  size_t positions() const { return context > 0 ? context : prompt + output; }
};

struct Prediction {
  // Of the requests: the mean and the last to see its first token.
  double ttft_s = 0, last_ttft_s = 0;
  double queue_s = 0;    // of ttft_s, waiting for others
  double prefill_s = 0;  // ttft_s of a request alone
  double token_s = 0;    // mean time between the tokens of one stream, prompts of others included
  double total_s = 0;    // until the last request has its last token
  double step_s = 0;     // a decode step of all that run at once, halfway through the output
  PassTime step;         // where its time goes
  double decode_tok_s = 0;   // of all streams, in such steps
  double prefill_tok_s = 0;  // of a request alone
  // The roofs of both: the least time that the machine's ceilings allow.
  double decode_roof_tok_s = 0, prefill_roof_tok_s = 0;
  bool decode_compute_binds = false;
  double bytes_per_step = 0, weight_bytes_per_step = 0, macs_per_step = 0;
};
Prediction Predict(const ModelWork& model, const MachineSpeed& speed, const Workload& workload);

struct MemoryPlan {
  double weights_bytes = 0;      // resident
  double workspace_bytes = 0;    // of a pass
  double program_bytes = 0;      // the tokenizer, the logits, the program itself: about
  double kv_token_bytes = 0;     // one more position, all layers
  double kv_sequence_bytes = 0;  // a whole context; sliding-window layers capped
  size_t sequences_fit = 0;      // whole contexts beside the rest in room_bytes
  double room_bytes = 0;
  // With `running` contexts.
  double resident_bytes = 0;
  bool fits() const { return resident_bytes <= room_bytes; }
};
// threads: workers of the workspace; room_bytes: memory and control group's limit. Error: the
// context is too large for any machine.
Result<MemoryPlan> PlanMemory(const ModelWork& model, const Workload& workload, int threads,
                              double room_bytes);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_PLAN_H_
