// A headless Chromium and pages in it that remember everything they complain about or ask for.
import fs from 'node:fs';
import {createRequire} from 'node:module';

import {equal} from './checks.mjs';
import {until} from './servers.mjs';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

export const findChromium = () =>
  [process.env.CHROMIUM, ...CHROMIUM].find((path) => path && fs.existsSync(path));

export class Browser {
  // `modules`: a folder with node_modules.
  constructor(modules, shots) {
    const require = createRequire(`${modules}/`);
    this.puppeteer = require('puppeteer-core');
    this.axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
    this.shots = shots;
  }

  async start(program) {
    this.browser = await this.puppeteer.launch({
      executablePath: program, headless: true, protocolTimeout: 120000,
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--force-color-profile=srgb'],
    });
    return this;
  }

  stop() {
    return this.browser.close();
  }

  // A page with storage of its own. `size`: [width, height].
  async open(url, {size = [1400, 900], before} = {}) {
    const context = await this.browser.createBrowserContext();
    const page = await context.newPage();
    const look = new Look(this, context, page, url);
    await page.setViewport({width: size[0], height: size[1]});
    await page.evaluateOnNewDocument(() => {
      window.violations = [];
      document.addEventListener('securitypolicyviolation', (event) => {
        window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
      });
    });
    if (before) await page.evaluateOnNewDocument(before);
    await page.goto(url);
    return look;
  }
}

export class Look {
  complaints = [];  // console errors and warnings, exceptions
  asked = [];       // addresses of all requests

  constructor(browser, context, page, url) {
    Object.assign(this, {browser, context, page, url});
    page.on('console', (message) => {
      if (['error', 'warn'].includes(message.type())) {
        this.complaints.push(`${message.text()} ${message.location().url ?? ''}`);
      }
    });
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('request', (request) => this.asked.push(request.url()));
  }

  close() {
    return this.context.close();
  }

  $text(selector) {
    return this.page.$eval(selector, (element) => element.textContent);
  }

  count(selector) {
    return this.page.$$eval(selector, (all) => all.length);
  }

  visible(selector) {
    return this.page.$eval(selector, (element) => element.checkVisibility());
  }

  until(what, f, ...more) {
    return until(what, () => this.page.evaluate(f, ...more));
  }

  // Waits for the models, so that a message has somebody to go to.
  ready() {
    return this.until('the list of models', () => document.getElementById('model').options.length > 0);
  }

  async type(text) {
    await this.page.focus('#prompt');
    await this.page.keyboard.type(text);
  }

  async say(text) {
    await this.ready();
    await this.type(text);
    await this.page.keyboard.press('Enter');
  }

  answered(answers) {
    return this.until(`${answers} answers`, (n) =>
      document.getElementById('stop').hidden &&
      document.querySelectorAll('article.assistant').length === n, answers);
  }

  press(selector) {
    return this.page.$eval(selector, (element) => element.click());
  }

  // The button of this name in the last article of the kind.
  async act(kind, name) {
    const done = await this.page.evaluate((role, label) => {
      const last = [...document.querySelectorAll(`article.${role}`)].at(-1);
      const button = [...last.querySelectorAll('button')].find((one) => one.textContent === label);
      button?.click();
      return Boolean(button);
    }, kind, name);
    if (!done) throw new Error(`no button ${name} in the last article.${kind}`);
  }

  async theme(name) {
    await this.page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: name}]);
  }

  async shot(name) {
    if (!this.browser.shots) return;
    fs.mkdirSync(this.browser.shots, {recursive: true});
    await this.page.screenshot({path: `${this.browser.shots}/${name}.png`});
  }

  // Nothing for axe to say, in this state of the page.
  async accessible(name) {
    await this.page.evaluate(this.browser.axe);
    const found = await this.page.evaluate((rules) =>
      window.axe.run(document, {runOnly: {type: 'tag', values: rules}}).then((result) =>
        result.violations.map(({id, nodes}) => `${id}: ${nodes.map((one) =>
          `${one.target} ${one.any[0]?.message ?? ''}`).join('; ')}`)), RULES);
    equal(`axe: ${name}`, found, []);
  }

  // At the end of a page: no complaints but those expected, no violation of the policy, and
  // nothing asked of anybody else.
  async quiet(name, expected = /^$/) {
    equal(`${name}: nothing on the console`,
          this.complaints.filter((text) => !expected.test(text)), []);
    equal(`${name}: no violation of the policy`, await this.page.evaluate(() => window.violations), []);
    const {origin} = new URL(this.url);
    equal(`${name}: nothing asked of others`, this.asked.filter((url) =>
      new URL(url).origin !== origin && !url.startsWith('blob:') && !url.startsWith('data:')), []);
  }
}
