// Copies text, also where the browser keeps its clipboard from pages without TLS.
import {h} from './dom.js';

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = h('textarea', {class: 'unseen', readonly: true, 'aria-hidden': 'true'});
    field.value = text;
    document.body.append(field);
    const before = document.activeElement;
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    before?.focus();
    return done;
  }
}

// A button that copies what `text` returns and says so for a moment.
export function copyButton(text, label = 'Copy') {
  const button = h('button', {type: 'button', class: 'quiet'}, label);
  button.addEventListener('click', async () => {
    button.textContent = (await copy(text())) ? 'Copied' : 'No clipboard';
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}
