// Requests to the server that the page came from, and to nobody else. The key
// lives in the session storage: it goes when the tab does.

const KEY = 'sluice.key';
let memoryKey = '';

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;  // 0: no answer
  }
}

export function key() {
  try {
    return sessionStorage.getItem(KEY) ?? memoryKey;
  } catch {
    return memoryKey;
  }
}

export function setKey(value) {
  memoryKey = value;
  try {
    sessionStorage.setItem(KEY, value);
  } catch {
    // Kept in memory.
  }
}

async function errorOf(response) {
  let message = `the server answered ${response.status}`;
  try {
    const body = await response.json();
    message = body.error?.message ?? body.error ?? message;
  } catch {
    // Not ours: a proxy's page.
  }
  return new ApiError(String(message), response.status);
}

// The response, once its head says that it is well. `body`: sent as JSON. Throws ApiError, or
// AbortError when `signal` says so.
export async function call(path, {body, signal} = {}) {
  const headers = {};
  if (key()) headers.Authorization = `Bearer ${key()}`;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, {
      method: body === undefined ? 'GET' : 'POST',
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: 'no-store',
      credentials: 'same-origin',
    });
  } catch (error) {
    if (error.name === 'AbortError' || error.name === 'TimeoutError') throw error;
    throw new ApiError('the server does not answer', 0);
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

// Server-sent events, piece by piece as the network cuts them: the data of each whole event.
export class EventParser {
  #rest = '';
  #data = [];

  push(text) {
    const events = [];
    this.#rest += text;
    // A CR at the end may be half of a CRLF: it waits.
    const end = this.#rest.endsWith('\r') ? this.#rest.length - 1 : this.#rest.length;
    const lines = this.#rest.slice(0, end).split(/\r\n|\r|\n/);
    this.#rest = lines.pop() + this.#rest.slice(end);
    for (const line of lines) {
      if (line === '') {
        if (this.#data.length) events.push(this.#data.join('\n'));
        this.#data = [];
      } else if (line.startsWith('data:')) {
        this.#data.push(line.slice(line[5] === ' ' ? 6 : 5));
      }
    }
    return events;
  }
}

// The objects of a stream up to [DONE]. Throws ApiError where it breaks off or carries an error.
export async function* stream(path, body, signal) {
  const response = await call(path, {body, signal});
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  for (;;) {
    let chunk;
    try {
      chunk = await reader.read();
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new ApiError('the connection broke off', 0);
    }
    if (chunk.done) throw new ApiError('the connection broke off', 0);
    for (const data of parser.push(chunk.value)) {
      if (data === '[DONE]') return;
      const event = JSON.parse(data);
      if (event.error) throw new ApiError(event.error.message ?? String(event.error), 500);
      yield event;
    }
  }
}
