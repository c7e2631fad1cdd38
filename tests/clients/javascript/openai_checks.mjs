// OpenAI's JavaScript client: chat, completions, responses, tools, schemas, errors, cancelling.
import OpenAI from 'openai';

import {
  CHAT, CHAT_PROMPT_TOKENS, CITY, KEY, MESSAGES, MODEL, PROMPT, PROMPT_TOKENS, STOP, TEXT, TOKENS,
  URL, WEATHER, checkCancel, collect, end, equal, isTrue, part, raises,
} from './checks.mjs';

const options = {baseURL: `${URL}/v1`, apiKey: KEY, maxRetries: 0, timeout: 120000};
const client = new OpenAI(options);
const GREEDY = {model: MODEL, max_tokens: TOKENS, temperature: 0};
const chat = (more = {}, other = client) =>
  other.chat.completions.create({messages: MESSAGES, ...GREEDY, ...more});
const complete = (more = {}) => client.completions.create({prompt: PROMPT, ...GREEDY, ...more});

async function models() {
  const ids = (await collect(client.models.list(), () => '')).parts.map((m) => m.id);
  equal('models: the served one is first', ids[0], MODEL);
  equal('models: retrieve', (await client.models.retrieve(MODEL)).id, MODEL);
}

async function completions() {
  const whole = await complete();
  equal('completion: the text of sluice run', whole.choices[0].text, TEXT);
  equal('completion: tokens', [whole.usage.prompt_tokens, whole.usage.completion_tokens],
        [PROMPT_TOKENS, TOKENS]);
  const streamed = await collect(
      await complete({stream: true, stream_options: {include_usage: true}}),
      (chunk) => chunk.choices[0]?.text);
  equal('completion, streamed: the same text', streamed.text, TEXT);
  equal('completion, streamed: usage comes once, without choices',
        streamed.parts.filter((c) => c.usage).map((c) => [c.choices.length, c.usage.total_tokens]),
        [[0, PROMPT_TOKENS + TOKENS]]);
  const stopped = await complete({stop: STOP});
  equal('stop: the text before it', stopped.choices[0].text, TEXT.slice(0, TEXT.indexOf(STOP)));
  const logprobs = (await complete({logprobs: 1})).choices[0].logprobs;
  equal('logprobs: tokens make the text', logprobs.tokens.join(''), TEXT);
}

async function chats() {
  const whole = await chat();
  equal('chat: the text of sluice run', whole.choices[0].message.content, CHAT);
  equal('chat: prompt tokens', whole.usage.prompt_tokens, CHAT_PROMPT_TOKENS);
  const streamed = await collect(await chat({stream: true}), (c) => c.choices[0]?.delta.content);
  equal('chat, streamed: the same text', streamed.text, CHAT);
  equal('chat, streamed: finish_reason', streamed.parts.at(-1).choices[0].finish_reason, 'length');
  const stream = client.chat.completions.stream({messages: MESSAGES, ...GREEDY});
  equal('chat, stream helper', await stream.finalContent(), CHAT);
  const texts = await Promise.all([1, 2, 3, 4].map(
      async () => (await chat()).choices[0].message.content));
  equal('four at once: all the same text', [...new Set(texts)], [CHAT]);
}

async function structures() {
  const answer = await chat({
    max_tokens: 40,
    response_format: {type: 'json_schema', json_schema: {name: 'city', schema: CITY, strict: true}},
  });
  const {city} = JSON.parse(answer.choices[0].message.content);
  isTrue('schema', ['Paris', 'Rome'].includes(city), city);
  const forced = {tools: [WEATHER], tool_choice: 'required', parallel_tool_calls: false, max_tokens: 60};
  const called = (await chat(forced)).choices[0];
  equal('tools: finish_reason', called.finish_reason, 'tool_calls');
  const call = called.message.tool_calls[0].function;
  equal('tools: name', call.name, 'weather');
  isTrue('tools: arguments', ['Paris', 'Rome'].includes(JSON.parse(call.arguments).city), call);
  const final = await client.chat.completions.stream({messages: MESSAGES, ...GREEDY, ...forced})
      .finalChatCompletion();
  equal('tools, streamed: the same arguments',
        final.choices[0].message.tool_calls[0].function.arguments, call.arguments);
}

async function responses() {
  const request = {model: MODEL, input: MESSAGES, temperature: 0, max_output_tokens: TOKENS};
  equal('responses: the text of chat', (await client.responses.create(request)).output_text, CHAT);
  const streamed = await collect(
      await client.responses.create({...request, stream: true}),
      (event) => event.type === 'response.output_text.delta' ? event.delta : '');
  equal('responses, streamed: the same text', streamed.text, CHAT);
}

async function embeddings() {
  const embed = (more) => client.embeddings.create({model: MODEL, input: 'a river', ...more});
  const coded = (await embed({})).data[0].embedding;  // asked for and decoded as base64
  const plain = (await embed({encoding_format: 'float'})).data[0].embedding;
  isTrue('embeddings: floats are those of base64', plain.length === coded.length &&
         plain.every((x, i) => Math.abs(x - coded[i]) < 1e-7));
  const two = await embed({input: ['a mountain', 'a river'], dimensions: 64});
  equal('embeddings: dimensions', two.data.map((e) => e.embedding.length), [64, 64]);
  const length = two.data[1].embedding.reduce((sum, x) => sum + x * x, 0);
  isTrue('embeddings: of unit length', Math.abs(length - 1) < 1e-5, length);
}

async function errors() {
  await raises('an unknown model', OpenAI.NotFoundError, 404, () => chat({model: 'nobody'}),
               'nobody');
  await raises('a bad parameter', OpenAI.BadRequestError, 400, () => chat({top_p: 7}), 'top_p');
  await raises('an error before a stream', OpenAI.BadRequestError, 400,
               () => chat({stream: true, temperature: 'hot'}), 'temperature');
  const stranger = new OpenAI({...options, apiKey: 'wrong'});
  await raises('a wrong key', OpenAI.AuthenticationError, 401, () => chat({}, stranger));
  try {
    await chat({temperature: -1});
    isTrue('an error has its param', false);
  } catch (error) {
    equal('an error has its param', [error.param, error.type],
          ['temperature', 'invalid_request_error']);
    isTrue('an error has the id of its request', error.requestID, error);
  }
}

async function leaveStream() {
  const stream = await complete({max_tokens: 4000, stream: true, ignore_eos: true});
  for await (const _ of stream) break;
  stream.controller.abort();
}

for (const run of [models, completions, chats, structures, responses, embeddings, errors]) {
  await part(run);
}
await part(() => checkCancel('cancel', leaveStream));
end();
