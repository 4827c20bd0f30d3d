import { main } from '../../bin/main.js'

/**
 * @param {Record<string, string>} env
 * @returns {Record<string, string | undefined>} this and what the test's own process has, except for configuration
 */
export const environment = env => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HALLEY_'))),
  ...env,
})

/**
 * Runs a command without a process of its own, for what ends by itself.
 * @param {string[]} args
 * @param {{env?: Record<string, string>, cwd?: string, terminal?: boolean}} [where]
 */
export async function halley(args, { env = {}, cwd = process.cwd(), terminal = false } = {}) {
  const said = { out: '', err: '' }
  const code = await main(args, {
    env: environment(env),
    cwd,
    terminal,
    stdout: text => {
      said.out += text
    },
    stderr: text => {
      said.err += text
    },
  })
  return { code: code ?? 0, ...said }
}
