// What the page must do, case by case. Each has servers and browser pages of its own.
import {equal, isTrue} from './checks.mjs';
import {markdown} from './markdown_case.mjs';
import {Proxy, Sluice, TEMPLATE, sleep, until} from './servers.mjs';

const DISCONNECTED = /Failed to load resource|ERR_|net::/;
const REFUSED = /status of 401/;
const DECISIONS = {temperature: '0', max_tokens: '16', seed: '1'};
const LONG = ['# Rivers\n\nThe **Danube** flows through ten countries; its `length` is 2850 km.\n\n',
  '1. Danube\n2. Rhine\n   - Main\n   - Mosel\n3. Loire\n\n',
  '| river | km | sea |\n|:--|--:|:-:|\n| Danube | 2850 | Black Sea |\n| Rhine | 1233 | North Sea |\n\n',
  '```python\ndef longest(rivers):\n    # the one with the most kilometres\n    return max(rivers, key=lambda r: r.km)\n```\n\n',
  '> Rivers know this: there is no hurry.\n\nMore at <https://example.org/rivers>.'];

// f(sluice, look): a server with a chat template and a page of it.
async function withServer({program, model}, flags, browser, f) {
  const sluice = await new Sluice(program, model, flags).start();
  try {
    const look = await browser.open(sluice.url);
    await f(sluice, look);
    await look.close();
  } finally {
    await sluice.stop();
  }
}

// The same with a proxy between: f(proxy, open), where open(options) gives a page.
async function withProxy({program, model}, browser, f, flags = ['--chat-template', TEMPLATE]) {
  const sluice = await new Sluice(program, model, flags).start();
  const proxy = await new Proxy(sluice).start();
  try {
    await f(proxy, (more) => browser.open(proxy.url + proxy.prefix, more));
  } finally {
    await proxy.stop();
    await sluice.stop();
  }
}

async function set(look, fields) {
  await look.page.$eval('#settings', (element) => { element.open = true; });
  for (const [name, value] of Object.entries(fields)) {
    await look.page.focus(`#${name}`);
    await look.page.keyboard.type(value);
  }
}

async function chat(browser, options) {
  await withServer(options, ['--chat-template', TEMPLATE], browser, async (sluice, look) => {
    const {page} = look;
    await look.ready();
    const policy = (await fetch(sluice.url, {headers: {Accept: 'text/html'}})).headers
        .get('content-security-policy');
    isTrue('the policy has no unsafe-inline', policy && !policy.includes('unsafe'), policy);
    equal('curl gets the heartbeat', await (await fetch(sluice.url)).text(), 'Ollama is running');
    equal('the model is there', await page.$eval('#model', (element) => element.value), 'small');
    await set(look, DECISIONS);
    await look.say('Name three rivers of Europe.');
    await look.answered(1);
    const line = await look.$text('article.assistant .line');
    for (const word of ['first token', 'prefill', 'decode', '16 tokens']) {
      isTrue(`the answer's line has: ${word}`, line.includes(word), line);
    }
    const first = await look.$text('article.assistant .text');
    isTrue('there is an answer', first.length > 0);
    await look.act('assistant', 'Again');
    await look.until('an answer with cached tokens', () =>
      document.querySelector('article.assistant .line').textContent.includes('cached'));
    equal('temperature 0 says the same again', await look.$text('article.assistant .text'), first);
    await look.say('And more?');
    await look.answered(2);
    equal('two questions', await look.count('article.user'), 2);
    await page.reload();
    await look.ready();
    equal('a reload keeps them', await look.count('article'), 4);
    equal('and the parameters', await page.$eval('#max_tokens', (element) => element.value), '16');
    await look.until('the roofline', () => document.querySelector('#machine circle.now'));
    equal('histograms of both times', await look.count('#machine rect.bar') > 1, true);
    const machine = await look.$text('#machine');
    for (const word of ['reads', 'of the roof', 'kept for later', 'of 4 busy', 'half within', 'cached']) {
      isTrue(`the machine has: ${word}`, machine.includes(word), machine);
    }
    await look.shot('chat-light');
    await look.theme('dark');
    await look.shot('chat-dark');
    await look.accessible('with charts, dark');
    await page.setViewport({width: 360, height: 1500});
    await look.until('folded panels', () => document.getElementById('machine').hidden);
    await look.press('#show-machine');
    await look.shot('chat-phone-machine');
    await look.accessible('with charts, phone');
    await look.quiet('chat');
  });
}

async function streams(browser, options) {
  await withProxy(options, browser, async (proxy, open) => {
    proxy.says(Array.from({length: 30}, (_, i) => `word${i} `), 40);
    const look = await open();
    await look.say('<b>hello</b>');
    const lengths = new Set();
    await until('some growth', async () => {
      if (await look.count('article.assistant .text')) {
        lengths.add((await look.$text('article.assistant .text')).length);
      }
      return lengths.size > 5;
    });
    isTrue('text comes piece by piece', lengths.size > 5);
    equal('the button is Stop', [await look.visible('#stop'), await look.visible('#send')],
          [true, false]);
    await look.answered(1);
    equal('all of it', (await look.$text('article.assistant .text')).trim().split(' ').length, 30);
    const line = await look.$text('article.assistant .line');
    for (const word of ['4 of 9 prompt tokens cached', 'prefill 321 tok/s', 'decode 45.6 tok/s',
                        '78 % of the ceiling']) {
      isTrue(`the answer's line has: ${word}`, line.includes(word), line);
    }
    const body = JSON.parse(proxy.requests.findLast((one) => one.path.includes('chat')).body);
    equal('the request', [body.stream, body.ceiling, body.messages],
          [true, true, [{role: 'user', content: '<b>hello</b>'}]]);
    await look.page.focus('#prompt');
    await look.page.keyboard.down('Shift');
    await look.page.keyboard.press('Enter');
    await look.page.keyboard.up('Shift');
    equal('Shift+Enter sends nothing', await look.count('article.user'), 1);
    // Announced in sentences, not in tokens.
    const said = await look.$text('#said');
    isTrue('the end is announced', said.includes('word29'), said);
    await look.quiet('streams');
    await look.close();
  });
}

async function cancels(browser, options) {
  await withProxy(options, browser, async (proxy, open) => {
    const {sluice} = proxy;
    const look = await open();
    proxy.extra = {ignore_eos: true};  // it would go on to the end of the context
    const aborts = () => sluice.sample(/^vllm:request_success_total.*"abort"/);
    const stops = {button: () => look.press('#stop'), Esc: () => look.page.keyboard.press('Escape')};
    let n = 0;
    for (const [name, stop] of Object.entries(stops)) {
      await look.say('Write a very long story, please. Begin with the sea.');
      await look.until('the first words', (at) =>
        document.querySelectorAll('article.assistant .text')[at]?.textContent.length > 10, n);
      await stop();
      await look.answered(++n);
      await until(`${name}: the server counts the abort`, async () => (await aborts()) === n);
      await until(`${name}: nothing runs any more`, async () =>
        (await sluice.sample(/^vllm:num_requests_running/)) === 0);
      const line = await look.page.$$eval('article.assistant .line', (all) => all.at(-1).textContent);
      isTrue(`${name}: what came is kept and says so`, line.includes('stopped'), line);
    }
    equal('both were cancelled on the server', await aborts(), 2);
    await look.quiet('cancels');
    await look.close();
  });
}

async function reconnects(browser, options) {
  const sluice = await new Sluice(options.program, options.model, ['--chat-template', TEMPLATE]).start();
  const {port} = sluice;
  const look = await browser.open(sluice.url);
  await look.say('Write a very long story, please. Begin with the sea.');
  await look.until('the first words', () =>
    document.querySelector('article.assistant .text')?.textContent.length > 10);
  await sluice.stop();
  await look.until('the banner', () =>
    document.getElementById('banner').textContent.includes('Reconnecting'));
  await look.answered(1);
  isTrue('what came is kept', (await look.$text('article.assistant .text')).length > 10);
  await look.shot('reconnecting');
  await look.say('Are you there?');
  await look.answered(2);
  isTrue('an error that says why', (await look.$text('article:last-child .error'))
      .includes('does not answer'), await look.$text('article:last-child .error'));
  await sluice.start(port);
  try {
    await look.until('no banner', () => document.getElementById('banner').textContent === '');
    await set(look, DECISIONS);
    await look.act('assistant', 'Again');
    await look.until('an answer', () =>
      /first token/.test(document.querySelector('article:last-child .line')?.textContent) &&
      document.getElementById('stop').hidden);
    equal('the error is gone', await look.visible('article:last-child .error'), false);
    await look.quiet('reconnects', DISCONNECTED);
  } finally {
    await look.close();
    await sluice.stop();
  }
}

// Models, people and titles write markup; it stays text.
async function scripts(browser, options) {
  const evil = ['<script>window.hacked=1</script>', '<img src=x onerror="window.hacked=2">',
    '[a](javascript:window.hacked=3)', '![b](https://elsewhere.test/x.png)',
    '[c](data:text/html,<script>1</script>)', '[d](JaVaScRiPt:1)', '[e](vbscript:x)',
    '<a href="javascript:1">f</a>', '`<svg onload=1>`', '| <b>x</b> | y |\n|--|--|\n| <i>z</i> | w |',
    '<https://elsewhere.test/y>', '[g](https://ok.test/ "t")', '[h]( javascript:1 )',
    '[i](java\tscript:1)', '```<img>\n<iframe src=//elsewhere.test></iframe>\n```',
    '<style>*{display:none}</style>', '[j](mailto:a@ok.test)', '# <u>k</u>', '[l](//elsewhere.test)'];
  await withProxy(options, browser, async (proxy, open) => {
    proxy.says(evil.map((one) => `${one}\n\n`));
    const look = await open();
    await look.say('<img src=x onerror="window.hacked=4">');
    await look.answered(1);
    equal('no markup became elements', await look.page.$$eval(
        '#log :is(script, img, iframe, svg, style, u, b, i, object, embed)', (all) => all.length), 0);
    equal('links go to http, https and mailto', await look.page.$$eval('#log a', (all) =>
      all.map((a) => [a.getAttribute('href'), a.rel, a.target].join(' '))), [
      'https://elsewhere.test/x.png noopener noreferrer _blank',
      'https://elsewhere.test/y noopener noreferrer _blank',
      'https://ok.test/ noopener noreferrer _blank', 'mailto:a@ok.test noopener noreferrer _blank']);
    const text = await look.$text('#log');
    for (const word of ['<script>window.hacked=1</script>', '[a](javascript:window.hacked=3)',
                        '<svg onload=1>', '<b>x</b>', '<iframe src=//elsewhere.test></iframe>']) {
      isTrue(`it is text: ${word}`, text.includes(word), text);
    }
    equal('nothing ran', await look.page.evaluate(() => window.hacked), undefined);
    equal('the title is text', await look.$text('#title'), '<img src=x onerror="window.hacked=4">');
    await look.quiet('scripts');
    await look.close();
  });
}

async function conversations(browser, options) {
  await withProxy(options, browser, async (proxy, open) => {
    proxy.says(['An *answer*.']);
    const look = await open();
    const {page} = look;
    await look.say('one');
    await look.answered(1);
    await look.press('#new-chat');
    await look.say('two');
    await look.answered(1);
    equal('two in the list, latest first', await page.$$eval('#chats button', (all) =>
      all.map((one) => one.textContent)), ['two', 'one']);
    await page.keyboard.down('Alt');
    await page.keyboard.press('ArrowDown');
    equal('Alt and an arrow: the next', await look.$text('#title'), 'one');
    await page.keyboard.press('KeyN');
    await page.keyboard.up('Alt');
    equal('Alt N: a new one', await look.$text('#title'), 'New conversation');
    await page.evaluate(() => [...document.querySelectorAll('#chats button')].at(-1).click());
    await look.act('user', 'Edit');
    await page.keyboard.type(' more');
    await page.keyboard.press('Enter');
    await look.answered(1);
    equal('an edited message is sent again', JSON.parse(proxy.requests.findLast((one) =>
      one.path.includes('chat')).body).messages, [{role: 'user', content: 'one more'}]);
    await look.context.overridePermissions(look.url, ['clipboard-read', 'clipboard-write']);
    await page.bringToFront();
    await look.act('assistant', 'Copy');
    await look.until('it says so', () => document.querySelector('#log').textContent.includes('Copied'));
    equal('copied as it was written', await page.evaluate(() => navigator.clipboard.readText()),
          'An *answer*.');
    // Exported: the download is looked at instead of saved.
    const saved = await page.evaluate(async () => {
      let blob;
      const make = URL.createObjectURL;
      URL.createObjectURL = (object) => { blob = object; return make.call(URL, object); };
      const click = HTMLAnchorElement.prototype.click;
      let name;
      HTMLAnchorElement.prototype.click = function() { name = this.download; };
      document.getElementById('export').click();
      HTMLAnchorElement.prototype.click = click;
      URL.createObjectURL = make;
      return {name, text: await blob.text()};
    });
    const exported = JSON.parse(saved.text);
    equal('exported as JSON', [saved.name, exported.model, exported.messages.map((one) => one.content)],
          ['one.json', 'small', ['one more', 'An *answer*.']]);
    await look.press('#delete-chat');
    await look.press('#confirm button[value=no]');
    await sleep(100);
    equal('kept when not confirmed', await look.count('#chats button'), 2);
    await look.press('#delete-chat');
    await look.press('#confirm button[value=yes]');
    await look.until('one less', () => document.querySelectorAll('#chats button').length === 1);
    await page.reload();
    await look.ready();
    equal('and after a reload', await look.$text('#title'), 'two');
    await look.quiet('conversations');
    await look.close();
  });
}

async function fullStorage(browser, options) {
  await withProxy(options, browser, async (proxy, open) => {
    proxy.says(['still here']);
    const look = await open({before: () => {
      Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };
    }});
    await look.say('hello');
    await look.answered(1);
    isTrue('it says that there is no room', (await look.$text('#banner')).includes('no room'));
    equal('and goes on', await look.$text('article.assistant .text'), 'still here');
    await look.quiet('full storage');
    await look.close();
  });
}

async function keys(browser, options) {
  const flags = ['--chat-template', TEMPLATE, '--api-key', 'open-sesame', '--metrics-key', 'other'];
  await withServer(options, flags, browser, async (sluice, look) => {
    const {page} = look;
    const asked = () => look.until('the question', () => document.getElementById('key-dialog').open);
    await asked();
    await look.accessible('the key');
    await page.type('#key', 'wrong');
    await page.keyboard.press('Enter');
    await until('it asks again', async () => (await look.$text('#key-text')).includes('not one'));
    await page.type('#key', 'open-sesame');
    await page.keyboard.press('Enter');
    await look.ready();
    await set(look, DECISIONS);
    await look.say('hi');
    await look.answered(1);
    equal('the key is in the session alone', await page.evaluate(() =>
      [sessionStorage.getItem('sluice.key'), JSON.stringify(localStorage).includes('sesame')]),
          ['open-sesame', false]);
    isTrue('it stays out of the log', !sluice.log.includes('sesame'));
    await look.quiet('keys', REFUSED);
  });
}

async function baseModel(browser, options) {
  await withServer(options, [], browser, async (sluice, look) => {
    await look.until('the note', () => !document.getElementById('note').hidden);
    await set(look, DECISIONS);
    await look.say('The capital of France is');
    await look.answered(1);
    const first = await look.$text('#log .assistant .text');
    await look.press('#send');  // nothing: go on
    await look.answered(2);
    equal('one question', await look.count('article.user'), 1);
    isTrue('it goes on', first.length > 0);
    await look.accessible('a base model');
    await look.shot('base');
    await look.quiet('base model');
  });
}

// Without the metrics that it would like, and without any.
async function fewMetrics(browser, options) {
  await withProxy(options, browser, async (proxy, open) => {
    const texts = ['', 'vllm:num_requests_running{model_name="small"} 1\n', 'no metrics at all {\n\n',
      'sluice:read_bandwidth_bytes_per_second 0\nsluice:steps_total NaN\n'];
    for (const text of texts) {
      proxy.answers['/metrics'] = (request, response) => response.end(text);
      proxy.answers['/slots'] = (request, response) => response.end('[]');
      const look = await open();
      await look.ready();
      await look.until('a look at them', () => document.querySelector('#machine .slots, #machine .part p'));
      await look.quiet(`metrics ${JSON.stringify(text.slice(0, 20))}`);
      await look.close();
    }
    const stalls = (n) => `vllm:num_requests_running{model_name="small"} 2\n` +
        `sluice:stall_seconds_total{model_name="small",cause="weight_stream"} ${3 * n}\n` +
        `sluice:stall_seconds_total{model_name="small",cause="barrier"} ${n}\n` +
        `sluice:stall_seconds_total{model_name="small",cause="new_one"} 0\n` +
        `sluice:bandwidth_ceiling_ratio{model_name="small"} 0.83\n`;
    let n = 0;
    proxy.answers['/metrics'] = (request, response) => response.end(stalls(++n));
    proxy.answers['/slots'] = (request, response) => response.end(JSON.stringify([
      {id: 0, is_processing: true, sluice: {phase: 'prefill', prompt_tokens: 400, processed_tokens: 100,
                                            prefill_tok_s: 250, cached_tokens: 64}},
      {id: 1, is_processing: true, sluice: {phase: 'decode', generated_tokens: 7, decode_tok_s: 31,
                                            ceiling_ratio: 0.4}},
      {id: 2, is_processing: false},
      {id: -1, is_processing: false, sluice: {phase: 'queued', prompt_tokens: 12}}]));
    const look = await open();
    await look.until('a second look', () =>
      document.getElementById('machine').textContent.includes('last minute'));
    const text = await look.$text('#machine');
    for (const word of ['reading weights 75 %', 'waiting for each other 25 %', '83 %', '2 of 3 busy',
                        '100 of 400 tokens', '64 cached', '7 tokens', '40 % of the ceiling', 'queued']) {
      isTrue(`the machine has: ${word}`, text.includes(word), text);
    }
    await look.accessible('slots and causes');
    await look.shot('slots');
    await look.quiet('stalls and slots');
    await look.close();
  });
}

async function accessible(browser, options) {
  await withProxy(options, browser, async (proxy, open) => {
    proxy.says(LONG, 5);
    for (const theme of ['light', 'dark']) {
      for (const [name, size] of [['wide', [1400, 900]], ['narrow', [800, 900]], ['phone', [360, 740]]]) {
        const look = await open({size});
        await look.theme(theme);
        const state = `${theme}-${name}`;
        await look.accessible(`${state}, empty`);
        await look.shot(`${state}-empty`);
        await look.say('Which rivers of Europe are the longest? A table, please, and some code.');
        await look.answered(1);
        await look.until('a look at the machine', () => document.querySelector('#machine .figures'));
        await look.accessible(`${state}, answered`);
        await look.shot(state);
        const overflow = await look.page.evaluate(() =>
          document.documentElement.scrollWidth - document.documentElement.clientWidth);
        equal(`${state}: nothing is wider than the window`, overflow, 0);
        if (name !== 'wide') {
          equal(`${state}: panels are folded`, [await look.visible('#list'), await look.visible('#machine')],
                [false, false]);
          for (const panel of ['list', 'machine']) {
            await look.press(`#show-${panel}`);
            await look.until('the panel', (id) => document.getElementById(id).checkVisibility(), panel);
            await look.accessible(`${state}, ${panel}`);
            await look.shot(`${state}-${panel}`);
          }
          await look.page.keyboard.press('Escape');
          equal(`${state}: Esc folds`, await look.visible('#machine'), false);
        }
        await look.press('#show-help');
        await look.accessible(`${state}, keys`);
        await look.quiet(state);
        await look.close();
      }
    }
    const look = await open();
    await look.theme('dark');
    await look.press('#theme');
    equal('the theme that was chosen holds', await look.page.evaluate(() =>
      getComputedStyle(document.body).colorScheme), 'light');
    proxy.says(['slow '.repeat(3), 'end'], 3000);
    await look.say('x');
    await look.until('a busy answer', () => document.querySelector('.busy .markdown > p'));
    equal('no motion, whatever is preferred', await look.page.evaluate(() =>
      document.getAnimations().length), 0);
    await look.close();
  });
}

// Behind a proxy that has it under a path of its own.
async function underAPath(browser, options) {
  await withProxy(options, browser, async (proxy, open) => {
    proxy.prefix = '/llm/';
    proxy.says(['here']);
    const look = await open();
    await look.say('hello');
    await look.answered(1);
    equal('it answers', await look.$text('article.assistant .text'), 'here');
    await look.until('a look at the machine', () => document.querySelector('#machine .figures'));
    equal('all requests are below the path', look.asked.filter((url) =>
      !new URL(url).pathname.startsWith('/llm/')), []);
    await look.quiet('under a path');
    await look.close();
  });
}

// Where the focus is stays where it is while an answer is written.
async function focus(browser, options) {
  await withProxy(options, browser, async (proxy, open) => {
    proxy.says(['a']);
    const look = await open();
    await look.say('first');
    await look.answered(1);
    proxy.says(Array.from({length: 30}, () => 'word '), 60);
    await look.say('second');
    const where = () => look.page.evaluate(() => document.activeElement.textContent);
    await look.page.$eval('#chats button', (element) => element.focus());
    await sleep(1300);  // saved once a second
    equal('on the list', await where(), 'first');
    await look.page.$eval('article.user .actions button', (element) => element.focus());
    await look.answered(2);
    equal('on a message', await where(), 'Copy');
    await look.quiet('focus');
    await look.close();
  });
}

// From the first Tab on, without a mouse.
async function keyboard(browser, options) {
  await withProxy(options, browser, async (proxy, open) => {
    const look = await open({size: [800, 900]});
    await look.ready();
    await look.page.keyboard.press('Tab');
    equal('first the way past the header', await look.page.evaluate(() =>
      document.activeElement.className), 'skip');
    await look.page.keyboard.press('Enter');
    equal('to the message', await look.page.evaluate(() => document.activeElement.id), 'prompt');
    await look.page.keyboard.down('Alt');
    await look.page.keyboard.press('KeyM');
    await look.page.keyboard.up('Alt');
    equal('Alt M shows the machine', [await look.visible('#machine'), await look.page.$eval(
        '#show-machine', (element) => element.ariaExpanded)], [true, 'true']);
    await look.page.keyboard.press('Escape');
    equal('Esc hides it, and the focus is where it was opened', [await look.visible('#machine'),
      await look.page.evaluate(() => document.activeElement.id)], [false, 'show-machine']);
    await look.quiet('keyboard');
    await look.close();
  });
}

export const CASES = Object.fromEntries(Object.entries({
  chat, streams, cancels, reconnects, scripts, conversations, fullStorage, keys, baseModel,
  fewMetrics, accessible, keyboard, focus, underAPath, markdown: markdown(withProxy),
}).map(([name, run]) => [name, (browser, values) =>
  run(browser, {program: values.sluice, model: values.model})]));
