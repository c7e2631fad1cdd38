// Counts checks, and says in one line what each expected and found; the twin of python/checks.py.
import {isDeepStrictEqual, inspect} from 'node:util';

export const URL = process.env.SLUICE_URL;
export const KEY = process.env.SLUICE_KEY;
export const MODEL = process.env.SLUICE_MODEL;
const expected = JSON.parse(process.env.SLUICE_EXPECTED);
export const {prompt: PROMPT, messages: MESSAGES, tokens: TOKENS} = expected;
export const {text: TEXT, prompt_tokens: PROMPT_TOKENS} = expected.completion;
export const {text: CHAT, prompt_tokens: CHAT_PROMPT_TOKENS} = expected.chat;
export const STOP = TEXT.trim().split(/\s+/)[2];
export const CITY = {
  type: 'object', additionalProperties: false, required: ['city'],
  properties: {city: {type: 'string', enum: ['Paris', 'Rome']}},
};
export const WEATHER = {
  type: 'function',
  function: {name: 'weather', description: 'The weather of a city.', parameters: CITY},
};

let passed = 0, failed = 0, skipped = 0;

function count(ok, name, detail) {
  if (ok) ++passed; else ++failed;
  console.log(ok ? `ok      ${name}` : `FAILED  ${name}: ${detail}`);
}

export function equal(name, found, wanted) {
  count(isDeepStrictEqual(found, wanted), name,
        `expected ${inspect(wanted)}, found ${inspect(found)}`);
}

export function isTrue(name, condition, found) {
  count(Boolean(condition), name, `found ${inspect(found)}`);
}

// `call` fails with this class and status, and a message that has `text`.
export async function raises(name, type, status, call, text = '') {
  try {
    const result = await call();
    count(false, name, `expected ${type.name}, found an answer: ${inspect(result)}`);
  } catch (error) {
    const found = error.status ?? error.status_code;
    const ok = error instanceof type && (status === undefined || found === status) &&
        String(error.message).includes(text);
    count(ok, name, `expected ${type.name} ${status} with '${text}', found ${inspect(error)}`);
  }
}

// An exception is one failure and not the end of the rest.
export async function part(run) {
  try {
    await run();
  } catch (error) {
    count(false, run.name, inspect(error));
  }
}

export async function collect(iterable, text) {
  let all = '';
  const parts = [];
  for await (const one of iterable) {
    parts.push(one);
    all += text(one) ?? '';
  }
  return {text: all, parts};
}

async function sample(pattern) {
  const lines = (await (await fetch(`${URL}/metrics`)).text()).split('\n');
  return lines.filter((line) => pattern.test(line))
      .reduce((sum, line) => sum + Number(line.split(' ').pop()), 0);
}

// `start` begins a long answer and leaves it: the server must notice, and run it no further.
export async function checkCancel(name, start) {
  const aborts = /^vllm:request_success_total.*finished_reason="abort"/;
  const before = await sample(aborts);
  await start();
  const deadline = Date.now() + 20000;
  while (await sample(aborts) === before && Date.now() < deadline) {
    await new Promise((done) => setTimeout(done, 100));
  }
  equal(`${name}: the server counts one abort`, await sample(aborts) - before, 1);
  equal(`${name}: nothing runs any more`, await sample(/^vllm:num_requests_running/), 0);
}

export function end() {
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  process.exit(failed ? 1 : 0);
}
