// Ollama's JavaScript client: generate, chat, formats, lists, errors, cancelling.
import {Ollama} from 'ollama';

import {
  CHAT, CHAT_PROMPT_TOKENS, CITY, KEY, MESSAGES, MODEL, PROMPT, PROMPT_TOKENS, TEXT, TOKENS, URL,
  checkCancel, collect, end, equal, isTrue, part, raises,
} from './checks.mjs';

const client = new Ollama({host: URL, headers: {Authorization: `Bearer ${KEY}`}});
const greedy = {temperature: 0, num_predict: TOKENS, repeat_penalty: 1};
const generate = (more = {}) =>
  client.generate({model: MODEL, prompt: PROMPT, raw: true, options: greedy, ...more});
const chat = (more = {}) =>
  client.chat({model: MODEL, messages: MESSAGES, options: greedy, ...more});

async function generates() {
  const whole = await generate();
  equal('generate: the text of sluice run', whole.response, TEXT);
  equal('generate: counts', [whole.prompt_eval_count, whole.eval_count], [PROMPT_TOKENS, TOKENS]);
  const streamed = await collect(await generate({stream: true}), (p) => p.response);
  equal('generate, streamed: the same text', streamed.text, TEXT);
  equal('generate, streamed: done once, at the end',
        streamed.parts.map((p) => p.done).indexOf(true), streamed.parts.length - 1);
  equal('generate, streamed: done_reason', streamed.parts.at(-1).done_reason, 'length');
}

async function chats() {
  const whole = await chat();
  equal('chat: the text of sluice run', whole.message.content, CHAT);
  equal('chat: prompt tokens', whole.prompt_eval_count, CHAT_PROMPT_TOKENS);
  const streamed = await collect(await chat({stream: true}), (p) => p.message.content);
  equal('chat, streamed: the same text', streamed.text, CHAT);
  const answer = await chat({format: CITY, options: {...greedy, num_predict: 40}});
  const {city} = JSON.parse(answer.message.content);
  isTrue('format: follows the schema', ['Paris', 'Rome'].includes(city), city);
}

async function lists() {
  const names = (await client.list()).models.map((m) => m.model.split(':')[0]);
  isTrue('list', names.includes(MODEL), names);
  equal('ps', (await client.ps()).models.map((m) => m.model.split(':')[0]), [MODEL]);
  const shown = await client.show({model: MODEL});
  equal('show', [shown.details.format, shown.model_info['general.architecture']],
        ['gguf', 'gemma3']);
  isTrue('version', /^\d+\.\d+\.\d+/.test((await client.version()).version));
}

async function embeds() {
  const {embeddings} = await client.embed({model: MODEL, input: ['a river', 'a mountain']});
  equal('embed: a vector each', embeddings.length, 2);
  const length = embeddings[0].reduce((sum, x) => sum + x * x, 0);
  isTrue('embed: of unit length', Math.abs(length - 1) < 1e-5, length);
  const old = await client.embeddings({model: MODEL, prompt: 'a river'});
  equal('embeddings: as many values', old.embedding.length, embeddings[0].length);
}

async function errors() {
  await raises('an unknown model', Error, 404, () => generate({model: 'nobody'}), 'nobody');
  await raises('an unknown model, streamed', Error, 404,
               () => chat({model: 'nobody', stream: true}), 'nobody');
  await raises('a bad format', Error, 400, () => chat({format: 'yaml'}), 'format');
  const stranger = new Ollama({host: URL, headers: {Authorization: 'Bearer wrong'}});
  await raises('a wrong key', Error, 401, () => stranger.list());
}

async function leaveStream() {
  const stream = await generate({stream: true, options: {num_predict: 4000, temperature: 0}});
  setTimeout(() => stream.abort(), 500);
  await raises('cancel: the client says so', Error, undefined,
               () => collect(stream, (p) => p.response), 'abort');
}

for (const run of [generates, chats, lists, embeds, errors]) await part(run);
await part(() => checkCancel('cancel', leaveStream));
end();
