import { createInterface } from 'node:readline/promises'

/**
 * Questions on the terminal, one after another.
 * @typedef {object} Questions
 * @property {(text: string) => Promise<string | null>} ask the answer, trimmed; null: the input has ended (Ctrl-D,
 *   Ctrl-C)
 * @property {() => void} close
 */

/** @returns {Questions} on the standard streams of this process */
export function openQuestions() {
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  /** @type {Promise<null>} */
  const ended = new Promise(resolve => {
    lines.once('close', () => resolve(null))
  })
  return {
    async ask(text) {
      // Newer versions of Node.js reject a question at the end of the input.
      const answer = await Promise.race([lines.question(text).catch(() => null), ended])
      return answer === null ? null : answer.trim()
    },
    close: () => lines.close(),
  }
}
