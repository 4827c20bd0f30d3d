import { UsageError } from './args.js'

/** @import { Source } from '../../dashboard/source/link.js' */
/** @import { Capabilities } from '../../dashboard/terminal/capabilities.js' */
/** @import { Command } from './command.js' */

/** How `npm start` hands over the key that it has generated: nobody else can read a process's environment. */
const KEY_VARIABLE = 'HALLEY_GENERATED_KEY'
/** ms for which `--once` waits for figures. */
const TIMEOUT = 5000
/** Of its picture, where that goes to no terminal: as wide as lines in a log or a mail may be. */
const PAGE_COLUMNS = 100
/** Narrower ones would leave too much out. */
const LEAST_COLUMNS = 60

/** @type {Command} */
export const dashboard = {
  name: 'dashboard',
  summary: 'watch a running gateway',
  help: `Usage: halley dashboard [SOCKET | PORT | URL] [flags]

Shows in the terminal, second by second, how a gateway and its workers are. Without an argument it finds the gateway that
runs on this machine. SOCKET is the path of a gateway's stats socket, PORT the port on which one listens here, and URL a
gateway anywhere, by its admin endpoints (https://host:port, with a path if admin.handler_prefix is not /admin).

      --key KEY          the admin key (admin.password) for a URL; HALLEY_ADMIN_KEY is better, as nobody else can see it
      --ascii            no characters beyond ASCII
      --no-color         no colours
      --once             print one picture as text, and end
  -h, --help             this text
  -V, --version          the version

Press h in the dashboard for its keys. Quitting it leaves the gateway running.

Examples:
  halley dashboard
  halley dashboard 8000
  HALLEY_ADMIN_KEY=secret halley dashboard https://gateway.example.com
`,
  flags: {
    key: { type: 'string' },
    ascii: { type: 'boolean' },
    'no-color': { type: 'boolean' },
    once: { type: 'boolean' },
    // How `npm start` begins it: the gateway belongs to this terminal.
    owner: { type: 'boolean' },
  },
  words: 1,

  async run({ env, stdout, stderr }, flags) {
    const { stdin, stdout: output } = process
    const { detectCapabilities } = await import('../../dashboard/terminal/capabilities.js')
    const capabilities = detectCapabilities({
      env,
      isTTY: Boolean(output.isTTY),
      flags: { ascii: flags.ascii, noColor: flags['no-color'] },
    })
    if (!flags.once && !(capabilities.screen && stdin.isTTY)) {
      stderr('halley dashboard: it needs a terminal; --once prints one picture as text\n')
      return 1
    }
    const source = await sourceOf(flags, env)
    if (typeof source === 'string') {
      stderr(`halley dashboard: ${source}\n`)
      return 1
    }
    if (flags.once) {
      const { renderOnce } = await import('../../dashboard/index.js')
      const columns = output.isTTY ? Math.max(LEAST_COLUMNS, output.columns) : PAGE_COLUMNS
      try {
        stdout(await renderOnce({ source, columns, unicode: capabilities.unicode, timeout: TIMEOUT }))
        return 0
      } catch (error) {
        stderr(`halley dashboard: ${error.message}\n`)
        return 1
      }
    }
    return await show(source, capabilities, Boolean(flags.owner), env[KEY_VARIABLE] ?? '', stderr)
  },
}

/**
 * @param {Source} source @param {Capabilities} capabilities @param {boolean} owner
 * @param {string} key that the gateway has generated
 * @param {(text: string) => void} stderr
 * @returns {Promise<number>} exit code
 */
async function show(source, capabilities, owner, key, stderr) {
  const [{ runDashboard }, { Terminal }, { EXIT_CODES }] = await Promise.all([
    import('../../dashboard/index.js'),
    import('../../dashboard/terminal/terminal.js'),
    import('../../dashboard/exit-codes.js'),
  ])
  const parent = process.ppid
  const { reason, text } = await runDashboard({
    source,
    // What stops the gateway's own terminal would stop the gateway.
    terminal: new Terminal({
      input: process.stdin,
      output: process.stdout,
      capabilities,
      suspendable: !owner,
    }),
    look: { unicode: capabilities.unicode, colors: capabilities.colors !== 0 },
    owner,
    key,
    orphaned: () => owner && process.ppid !== parent,
  })
  if (reason === 'refused') {
    stderr(`halley dashboard: ${source.name}: ${text}\n`)
    return EXIT_CODES.failed
  }
  return reason === 'stop' ? EXIT_CODES.stop : EXIT_CODES.left
}

/**
 * @param {Record<string, any>} flags @param {Readonly<Record<string, string | undefined>>} env
 * @returns {Promise<Source | string>} text: why there is none
 * @throws {UsageError}
 */
async function sourceOf(flags, env) {
  const [target] = flags.words
  if (/^https?:/i.test(target ?? '')) return remote(target, flags.key ?? env.HALLEY_ADMIN_KEY ?? '')
  if (flags.key !== undefined) throw new UsageError('--key is for a URL')
  const { SocketSource } = await import('../../dashboard/source/socket-source.js')
  if (/^[a-z]+:\/\/|^[^/]+:\d+$/i.test(target ?? ''))
    throw new UsageError(`"${target}" is no path; a URL begins with http:// or https://`)
  if (target !== undefined && !/^\d+$/.test(target)) return new SocketSource(target)
  const { listSockets } = await import('../stats/socket-path.js')
  const found = await listSockets({ runtimeDir: env.XDG_RUNTIME_DIR })
  if (target === undefined && found.length === 1) return new SocketSource(found[0].path)
  const wanted = found.find(({ port }) => port === Number(target))
  if (wanted !== undefined) return new SocketSource(wanted.path)
  if (found.length === 0)
    return 'no gateway of this user runs on this machine (for one elsewhere name its URL)'
  const list = found.map(({ port, path }) => `\n  halley dashboard ${port}   (${path})`).join('')
  const what =
    target === undefined ? 'there are several gateways' : `no gateway listens on port ${target}; there is`
  return `${what}:${list}`
}

/** @param {string} url @param {string} key */
async function remote(url, key) {
  if (!URL.canParse(url)) throw new UsageError(`"${url}" is no URL`)
  if (key === '') throw new UsageError('a URL needs the admin key: --key, or HALLEY_ADMIN_KEY')
  const { HttpSource } = await import('../../dashboard/source/http-source.js')
  return new HttpSource(url, key)
}
