// What the page talks to in its tests: sluice itself, and a proxy before it that answers the
// requests a test wants to decide and hands on the others, headers and all.
import {spawn} from 'node:child_process';
import http from 'node:http';
import {fileURLToPath} from 'node:url';

export const TEMPLATE = fileURLToPath(new URL('../clients/chat.jinja', import.meta.url));

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// True as soon as `f` gives something true (its value); fails after `seconds`, which is for hangs.
export async function until(what, f, seconds = 60) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(50)) {
    const found = await f();
    if (found) return found;
  }
  throw new Error(`waited ${seconds} s for: ${what}`);
}

export class Sluice {
  log = '';

  constructor(program, model, flags = []) {
    this.program = program;
    this.arguments = ['serve', model, '--kv-memory', '64MB', '--parallel', '4', '--ctx-size', '1024',
                      '--served-model-name', 'small', '--drain-seconds', '1', ...flags];
  }

  // `port` 0: a free one.
  async start(port = 0) {
    this.log = '';
    this.process = spawn(this.program, [...this.arguments, '--port', String(port)],
                         {stdio: ['ignore', 'ignore', 'pipe']});
    this.ended = new Promise((done) => this.process.once('exit', done));
    let gone = false;
    this.ended.then(() => { gone = true; });
    this.process.stderr.on('data', (data) => { this.log += data; });
    await until('sluice serve to get ready', () => {
      if (gone) throw new Error(`sluice serve ended: ${this.log}`);
      return this.log.includes('ready on');
    }, 300);
    [, this.url] = /ready on (http:\/\/\S+)/.exec(this.log);
    return this;
  }

  get port() {
    return Number(new URL(this.url).port);
  }

  async stop() {
    this.process.kill('SIGTERM');
    await this.ended;
  }

  async sample(pattern) {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    return text.split('\n').filter((line) => pattern.test(line))
        .reduce((sum, line) => sum + Number(line.split(' ').pop()), 0);
  }
}

// answers: path -> (request, response) => ...; requests: what was handed on or answered.
export class Proxy {
  answers = {};
  requests = [];
  extra = null;  // fields for the bodies of requests
  prefix = '/';  // what stands before the paths

  constructor(sluice) {
    this.sluice = sluice;
    this.target = sluice.url;
  }

  async start() {
    this.server = http.createServer((request, response) => this.#serve(request, response));
    await new Promise((done) => this.server.listen(0, '127.0.0.1', done));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  // Streams a chat answer of these pieces, `pause` milliseconds apart.
  says(pieces, pause = 0) {
    this.answers['/v1/chat/completions'] = async (request, response) => {
      response.writeHead(200, {'Content-Type': 'text/event-stream'});
      const send = (data) => response.write(`data: ${JSON.stringify(data)}\n\n`);
      for (const content of pieces) {
        send({choices: [{index: 0, delta: {content}, finish_reason: null}]});
        if (pause) await sleep(pause);
      }
      send({choices: [{index: 0, delta: {}, finish_reason: 'stop'}]});
      send({choices: [], usage: {prompt_tokens: 9, completion_tokens: pieces.length,
                                 prompt_tokens_details: {cached_tokens: 4}},
            timings: {prompt_per_second: 321, predicted_per_second: 45.6,
                      ceiling: {bandwidth_ratio: 0.78}}});
      response.end('data: [DONE]\n\n');
    };
  }

  async #serve(request, response) {
    let body = '';
    for await (const chunk of request) body += chunk;
    const url = `/${request.url.slice(this.prefix.length)}`;
    const path = url.split('?', 1)[0];
    this.requests.push({path, body, headers: request.headers});
    if (this.answers[path]) return this.answers[path](request, response);
    const headers = {...request.headers};
    if (body && this.extra) body = JSON.stringify({...JSON.parse(body), ...this.extra});
    if (body) headers['content-length'] = Buffer.byteLength(body);
    const onward = http.request(this.target + url,
        {method: request.method, headers}, (answer) => {
          response.writeHead(answer.statusCode, answer.headers);
          answer.pipe(response);
        });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    onward.end(body);
  }
}
