// From a conversation to a request and from the stream back to a message.
import {stream} from './api.js';

const FIELDS = ['temperature', 'top_p', 'max_tokens', 'seed'];
const COMPLETION_TOKENS = 256;  // a text without an end would go on to the end of the context

// The numbers that were given; others are the server's to choose.
export function parameters(settings) {
  const out = {};
  for (const name of FIELDS) {
    const text = String(settings[name] ?? '').trim();
    if (text !== '' && Number.isFinite(Number(text))) out[name] = Number(text);
  }
  return out;
}

// Templates want the roles to take turns, so what stands twice in a row is one.
function turns(chat) {
  const out = [];
  if (chat.settings.system?.trim()) out.push({role: 'system', content: chat.settings.system});
  for (const {role, content} of chat.messages) {
    if (content === '') continue;
    if (out.at(-1)?.role === role) out.at(-1).content += `\n\n${content}`;
    else out.push({role, content});
  }
  return out;
}

export function requestOf(chat, model, base) {
  const body = {model, stream: true, stream_options: {include_usage: true}, ceiling: true,
                ...parameters(chat.settings)};
  if (!base) return ['v1/chat/completions', {...body, messages: turns(chat)}];
  const prompt = chat.messages.map((message) => message.content).join('');
  return ['v1/completions', {max_tokens: COMPLETION_TOKENS, ...body, prompt}];
}

// Asks and fills `message` as the answer comes; `changed` is called after each piece. Ends with the
// stats in place; throws what stream() throws, with the stats that are known.
export async function ask(path, body, message, {signal, changed}) {
  const start = performance.now();
  const stats = message.stats = {};
  let first = 0, last = 0, pieces = 0;
  try {
    for await (const event of stream(path, body, signal)) {
      const choice = event.choices?.[0];
      const text = choice?.delta?.content ?? choice?.text ?? '';
      const thought = choice?.delta?.reasoning_content ?? '';
      if (text || thought) {
        last = performance.now();
        first ||= last;
        ++pieces;
        message.content += text;
        if (thought) message.reasoning = (message.reasoning ?? '') + thought;
      }
      stats.ttft = first ? (first - start) / 1e3 : undefined;
      if (choice?.finish_reason) stats.finish = choice.finish_reason;
      if (event.usage) {
        stats.prompt = event.usage.prompt_tokens;
        stats.generated = event.usage.completion_tokens;
        stats.cached = event.usage.prompt_tokens_details?.cached_tokens;
      }
      if (event.timings) {
        stats.prefill = event.timings.prompt_per_second;
        stats.decode = event.timings.predicted_per_second;
        stats.ceiling = event.timings.ceiling?.bandwidth_ratio || undefined;  // 0: not measured
      }
      changed();
    }
  } catch (error) {
    // Its totals did not come: what was seen here.
    stats.generated = pieces;
    if (pieces > 1) stats.decode = (pieces - 1) / ((last - first) / 1e3);
    if (error.name === 'AbortError') stats.finish = 'stopped';
    throw error;
  }
}
