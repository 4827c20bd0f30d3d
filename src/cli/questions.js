import { createInterface } from 'node:readline/promises'

/**
 * @typedef {object} Questions
 * @property {(text: string) => Promise<string | null>} ask trimmed answer; null: end of input (Ctrl-D, Ctrl-C)
 * @property {() => void} close
 */

/** @returns {Questions} */
export function openQuestions() {
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  /** @type {Promise<null>} */
  const ended = new Promise(resolve => {
    lines.once('close', () => resolve(null))
  })
  return {
    async ask(text) {
      // Newer Node.js rejects a question at the end of the input.
      const answer = await Promise.race([lines.question(text).catch(() => null), ended])
      return answer === null ? null : answer.trim()
    },
    close: () => lines.close(),
  }
}
