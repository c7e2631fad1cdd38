// One message of a conversation on the page: its text, its line of numbers, what can be done with it.
import {copyButton} from './clipboard.js';
import {byId, h, setText} from './dom.js';
import {render} from './markdown.js';
import {count, percent, rate, seconds} from './units.js';

const FINISH = {length: 'ended at the token limit', stopped: 'stopped'};

// The numbers under an answer; '' where there are none.
export function numbers(stats) {
  if (!stats) return '';
  const {ttft, prompt, cached, prefill, decode, generated, ceiling, atLeast, finish} = stats;
  return [
    ttft > 0 && `first token ${seconds(ttft)}`,
    prompt > 0 && (cached > 0 ? `${cached} of ${prompt} prompt tokens cached` : count(prompt, 'prompt token')),
    prefill > 0 && `prefill ${rate(prefill)}`,
    generated > 0 && count(generated, 'token'),
    decode > 0 && `decode ${rate(decode)}`,
    ceiling > 0 && `${atLeast ? '≥ ' : ''}${percent(ceiling)} of the ceiling`,
    FINISH[finish],
  ].filter(Boolean).join(' · ');
}

export class MessageView {
  #text;
  #thoughts;
  #thought;
  #line;
  #error;
  #actions;

  // `actions`: {edit(text), remove(), again()}; those that are missing are not offered.
  constructor(message, actions, plain = false) {
    this.message = message;
    this.plain = plain || message.role === 'user';
    const mine = message.role === 'user';
    this.#thought = h('div', {class: 'markdown soft'});
    this.#thoughts = h('details', {class: 'thoughts', hidden: true},
        h('summary', {}, 'Thoughts'), this.#thought);
    this.#text = h('div', {class: this.plain ? 'text plain' : 'text markdown'});
    this.#line = h('p', {class: 'line'});
    this.#error = h('p', {class: 'error', hidden: true});
    this.#actions = h('div', {class: 'actions'}, copyButton(() => message.content));
    this.root = h('article', {class: message.role, 'aria-label': mine ? 'You' : 'Answer'},
        this.#thoughts, this.#text, this.#error, h('div', {class: 'foot'}, this.#line, this.#actions));
    const offer = (label, f) => this.#actions.append(
        h('button', {type: 'button', class: 'quiet', onclick: f}, label));
    if (actions.edit) offer('Edit', () => this.#edit(actions.edit));
    if (actions.again) offer('Again', actions.again);
    if (actions.remove) offer('Delete', actions.remove);
    this.update();
  }

  update() {
    const {content, reasoning, error, stats} = this.message;
    if (this.plain) setText(this.#text, content);
    else render(this.#text, content);
    this.#thoughts.hidden = !reasoning;
    if (reasoning) render(this.#thought, reasoning);
    this.#error.hidden = !error;
    setText(this.#error, error ?? '');
    setText(this.#line, numbers(stats));
  }

  set busy(busy) {
    this.root.classList.toggle('busy', busy);
    this.root.setAttribute('aria-busy', busy);
    this.#actions.hidden = busy;
  }

  #edit(done) {
    const field = h('textarea', {rows: '4', 'aria-label': 'Edit your message'});
    field.value = this.message.content;
    const close = () => {
      form.remove();
      this.#text.hidden = false;
      this.#actions.hidden = false;
    };
    const form = h('form', {class: 'edit'}, field, h('p', {class: 'buttons'},
        h('button', {type: 'button', onclick: () => { close(); byId('prompt').focus(); }}, 'Cancel'),
        h('button', {type: 'submit', class: 'main'}, 'Send again')));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      close();
      done(field.value);
    });
    field.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        close();
      } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
    this.#text.hidden = true;
    this.#actions.hidden = true;
    this.#text.after(form);
    field.focus();
  }
}
