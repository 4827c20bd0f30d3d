// Stands in for a language model: it knows two answers, and yields their tokens as slowly as a real one.

import { setTimeout as sleep } from 'node:timers/promises'

const COMETS = [
  'A comet is a lump of ice and dust, a few kilometres wide. Far from the Sun it is dark. Near the Sun the ice becomes',
  'gas, and the gas carries dust with it: a bright coma ☄️, and two tails. The dust tail bends along the orbit; the gas',
  'tail points straight away from the Sun.',
  "\n\nHalley's comet (哈雷彗星, auf Deutsch „Halleyscher Komet“) returns every 76 years. It was last near the Sun in",
  '1986, and comes back in 2061. Edmond Halley noticed that the comets of 1531, 1607 and 1682 had the same orbit, and',
  'predicted the next return for 1758. He did not live to see it 🔭.',
].join(' ')

const TOKENS = [
  'Send each token to the gateway as it arrives, and let the gateway keep the text:',
  '\n\n1. The backend appends each token to one entry of a map. It never sends the whole text again.',
  '\n2. Open pages receive the token, and append it too 🪄.',
  '\n3. A page that opens in the middle reads the text so far, then receives the rest. 中途打开的页面也能看到全文。',
  '\n4. A page that loses its connection receives the missed tokens, in order and once. Früher hätte sie alles neu',
  'laden müssen.',
  '\n\nNo page polls, and the backend does not know who is reading.',
].join(' ')

/**
 * @param {string} question
 * @param {number} delay between two tokens, ms
 * @yields {string} tokens
 */
export async function* answer(question, delay) {
  const text = /comet|halley|彗|☄/i.test(question) ? COMETS : TOKENS
  // Words, and parts of the long ones.
  for (const [token] of text.matchAll(/\s*\S{1,6}/g)) {
    await sleep(delay * (0.5 + Math.random()))
    yield token
  }
}
