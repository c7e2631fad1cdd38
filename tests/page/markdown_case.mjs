// Text in, elements out as tags and text, 'p(a em(b))': modules of the page called in the page, under its policy.
import {equal, isTrue} from './checks.mjs';

const EXPECTED = [
  ['a **b** *c* `d` ~~e~~', 'p(a strong(b) em(c) code(d) del(e))'],
  ['***both***', 'p(strong(em(both)))'],
  ['snake_case_name and 2 * 3 * 4', 'p(snake_case_name and 2 * 3 * 4)'],
  ['**open and `code**`', 'p(**open and code(code**))'],
  ['\\*text\\* \\\\ `a\\`', 'p(*text* \\ code(a\\))'],
  ['`` a ` b ``', 'p(code(a ` b))'],
  ['one\ntwo\n\nthree', 'p(one\ntwo) p(three)'],
  ['# a\n### b\n## c\n#d', 'h3(a) h4(b) h4(c) p(#d)'],
  ['- a\n- b\n  - c\n\n    d\n- e', 'ul(li(a)li(bul(li(cp(d))))li(e))'],
  ['2. a\n3. b\n\nafter', 'ol(li(a)li(b)) p(after)'],
  ['* a\n\n* b', 'ul(li(a)li(b))'],
  ['- a\n1. b', 'ul(li(a)) ol(li(b))'],
  ['> a\n> - b\n\nc', 'blockquote(p(a)ul(li(b))) p(c)'],
  ['---\n***', 'hr() hr()'],
  ['| a | b |\n|---|--:|\n| 1 | `x|y` |\n| 2 |', 'div(table(thead(tr(th(a)th(b)))' +
      'tbody(tr(td(1)td(code(x|y)))tr(td(2)td()))))'],
  ['a | b\nc', 'p(a | b\nc)'],
  ['```js\nlet a = "<b>";\n\tx\n```\nafter',
   'figure(figcaption(span(js)button(Copy))pre(code(let a = "<b>";\n\tx))) p(after)'],
  ['~~~\n```\n~~~', 'figure(figcaption(span(text)button(Copy))pre(code(```)))'],
  ['```\nopen', 'figure(figcaption(span(text)button(Copy))pre(code(open)))'],
  ['- a\n  ```\n  x\n    y\n  ```', 'ul(li(afigure(figcaption(span(text)button(Copy))pre(code(x\n  y)))))'],
  ['see https://a.test/b_c_d. Or [x](https://a.test/(1))', 'p(see a(https://a.test/b_c_d). Or a(x))'],
  ['[x](nowhere) [y] [z](', 'p([x](nowhere) [y] [z]()'],
  ['', ''],
];

export const markdown = (withProxy) => (browser, options) =>
  withProxy(options, browser, async (proxy, open) => {
    const look = await open();
    const found = await look.page.evaluate(async (texts) => {
      const {render} = await import('/page/markdown.js');
      const outline = (node) => (node.nodeType === 3 ? node.data :
        `${node.tagName.toLowerCase()}(${[...node.childNodes].map(outline).join('')})`);
      const write = (root) => [...root.childNodes].map(outline).join(' ');
      return texts.map((text) => {
        const root = document.createElement('div');
        render(root, text);
        // Grown a character at a time it is the same.
        const grown = document.createElement('div');
        for (let i = 1; i <= text.length; ++i) render(grown, text.slice(0, i));
        return [write(root), write(grown)];
      });
    }, EXPECTED.map(([text]) => text));
    EXPECTED.forEach(([text, wanted], i) => {
      equal(`markdown: ${JSON.stringify(text)}`, found[i], [wanted, wanted]);
    });
    // Texts made to be slow.
    const ms = await look.page.evaluate(async () => {
      const {render} = await import('/page/markdown.js');
      const start = performance.now();
      for (const text of ['*a '.repeat(20000), '['.repeat(20000), '`'.repeat(20001) + ' `a'.repeat(5000),
                          '> '.repeat(5000), '- '.repeat(5000), '_'.repeat(30000), '**a*'.repeat(8000),
                          '[a]('.repeat(8000), '\n'.repeat(50000), '|'.repeat(20000) + '\n|-|-|']) {
        render(document.createElement('div'), text);
      }
      return performance.now() - start;
    });
    isTrue('no text takes forever', ms < 20000, ms);
    const parsed = await look.page.evaluate(async () => {
      const {EventParser} = await import('/page/api.js');
      const text = ': hello\r\n\r\nevent: x\ndata: {"a":1}\n\ndata:b\rdata: c\r\r\ndata: ü😀\n\nid: 5\n\n';
      const whole = new EventParser().push(text);
      const parser = new EventParser();
      return [whole, [...text].flatMap((c) => parser.push(c))];
    });
    equal('server-sent events, however the network cuts them', parsed,
          Array(2).fill(['{"a":1}', 'b\nc', 'ü😀']));
    const read = await look.page.evaluate(async () => {
      const {Reading, histogram, quantile} = await import('/page/metrics.js');
      const now = new Reading('# HELP x y\nx{model_name="a\\"\\\\b",le="1.0"} 2\nh_bucket{le="+Inf"} 9\n' +
          'h_bucket{le="0.5"} 4.0\nh_bucket{le="1.0"} 8\nbroken{\nvllm:num_requests_running{model_name="m"} 1\n', 0);
      now.look('other');
      const bars = histogram(now, null, 'h');
      return [now.models(), now.value('x') ?? null, now.value('none') ?? null, bars.map(([, n]) => n), quantile(bars, 0.5)];
    });
    equal('the exposition', read, [['m'], null, null, [4, 4, 1], 0.5625]);
    await look.close();
  });
