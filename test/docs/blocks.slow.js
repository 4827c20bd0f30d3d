// Runs the `sh` and `js` blocks of the guides that have no comment: shell commands with bash against a gateway of the
// development profile, programs with Node.js. What a block needs that the guides leave to the reader is in PROGRAMS.

import { spawn } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { parse } from 'yaml'
import { DEFAULTS, initialText } from '../../src/config/initial.js'
import { developmentProfile } from '../../src/config/profile.js'
import { startGateway } from '../kit/gateway.js'
import { withoutProgram } from '../kit/needs.js'
import { freePort } from '../kit/ports.js'
import { blocksOf, PAGES } from './blocks.js'
import { root, workplace } from './workplace.js'

/** @import { Block } from './blocks.js' */

const KEY = 'key-of-the-tests-of-the-guides-000'
const HELP =
  'mend it, or write in the line before it `<!-- not run: REASON -->` or `<!-- run by test/FILE -->` (test/docs/blocks.js)'

/** What stands before the commands of a block. `curl -N` ends with its first bytes, `serve` as soon as it listens. */
const PRELUDE = `
set -o pipefail
halley() {
  if [ "$1" != serve ]; then command node "$ROOT/bin/halley.js" "$@"; return; fi
  HALLEY_HTTP_SERVER_PORT=$FREE_PORT command node "$ROOT/bin/halley.js" "$@" > served 2>&1 & local pid=$!
  until grep -q 'halley is listening' served; do kill -0 $pid || { cat served; return 1; }; sleep 0.1; done
  kill $pid; wait $pid
}
npx() { shift; halley "$@"; }
node() { if [ "$1" = bin/halley.js ]; then shift; halley "$@"; else command node "$@"; fi; }
curl() {
  local flag stream=
  for flag in "$@"; do case $flag in --*) ;; -*N*) stream=yes ;; esac; done
  if [ -z "$stream" ]; then command curl --fail-with-body "$@"; return; fi
  exec 3< <(exec curl --fail-with-body "$@")
  local pid=$! first
  first=$(head -c 1 <&3)
  kill $pid 2> /dev/null
  exec 3<&-
  [ -n "$first" ]
}
trap 'echo "failed: $BASH_COMMAND" >&2; exit 1' ERR
`

/**
 * Programs: the block of a page with that part, what stands before and after it, and what is replaced. Each ends by
 * itself with status 0.
 * @type {{page: string, part: string, before?: string, after?: string, replace?: [string, string][]}[]}
 */
const PROGRAMS = [
  {
    page: 'README.md',
    part: "client.newSubscription('news')",
    before: 'import WebSocket from "ws"; globalThis.WebSocket = WebSocket;',
    after: 'subscription.on("subscribed", () => client.disconnect())',
  },
  {
    page: 'README.md',
    part: 'websocket: WebSocket })',
    before: 'import { Centrifuge } from "centrifuge";',
    after: 'client.on("connected", () => client.disconnect()); client.connect()',
  },
  { page: 'README.md', part: 'await gateway.stop()' },
  { page: 'README.md', part: 'new ApiClient' },
  { page: 'docs/embedding.md', part: 'createGateway', after: 'await gateway.stop()' },
  { page: 'docs/embedding.md', part: 'new ApiClient' },
  {
    page: 'docs/hooks.md',
    part: 'defineHooks',
    after: `
      import { createGateway } from 'halley-gateway'
      import { Centrifuge } from 'centrifuge'
      import WebSocket from 'ws'
      import { isPrimary } from 'node:cluster'
      if (isPrimary) {
        const gateway = await createGateway({ file: 'halley.json', hooks: new URL(import.meta.url) })
        const client = new Centrifuge(gateway.url.replace('http', 'ws') + '/connection/websocket', {
          websocket: WebSocket, data: { name: 'ann' },
        })
        client.connect()
        const { data } = await client.rpc('time')
        if (typeof data !== 'number') throw new Error('no time')
        client.disconnect()
        await gateway.stop()
      }`,
  },
  {
    page: 'docs/hooks.md',
    part: 'export const disconnected',
    after: `
      const left = []
      started({ publish: async (channel, data) => void left.push([channel, data]) })
      await disconnected({ channels: ['news'], user: '42' })
      if (JSON.stringify(left) !== '[["news",{"left":"42"}]]') throw new Error('not published')`,
  },
  {
    page: 'docs/lifecycle.md',
    part: 'timingSafeEqual',
    before: `
      import { createHmac, timingSafeEqual } from 'node:crypto'
      const [secret, id, timestamp, body] = ['whsec_' + btoa('x'.repeat(32)), 'msg_1', '1', '[]']
      const signature = 'v1,' + createHmac('sha256', 'x'.repeat(32)).update(id + '.' + timestamp + '.' + body).digest('base64')`,
    after: 'if (!genuine) throw new Error("not genuine")',
  },
  {
    page: 'docs/long-poll.md',
    part: 'LongPollSocket',
    after: 'client.on("connected", () => client.disconnect()); client.connect()',
  },
  {
    page: 'docs/proxies.md',
    part: 'createServer',
    before: 'const ended = []; process.on("exit", () => ended.length || process.exit(1));',
    after: `
      const answer = await fetch('http://127.0.0.1:3000/rpc', { method: 'POST', body: '{"method":"now"}' })
      if ((await answer.json()).result.data.method !== 'now') throw new Error('no answer')
      ended.push(1)
      process.exit(0)`,
  },
]

/**
 * @param {any} t
 * @param {string} program
 * @param {string[]} args
 * @param {{cwd: string, env?: Record<string, string>}} options
 * @returns {Promise<{code: number | null, text: string}>}
 */
function run(t, program, args, { cwd, env }) {
  // A group of its own: what a command leaves running goes with it.
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, HALLEY_OVERLOAD_MAX_TICK: '0s', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  t.teardown(() => {
    try {
      process.kill(-(/** @type {number} */ (child.pid)), 'SIGKILL')
    } catch {
      // All have ended.
    }
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (text += chunk))
  return new Promise(resolve => child.once('exit', code => resolve({ code, text })))
}

const blocks = PAGES.flatMap(blocksOf).filter(({ notRun, runBy }) => notRun === '' && runBy === '')

/** A folder with the file that `config init` writes. @param {any} t */
async function configured(t) {
  const initial = initialText({ ...DEFAULTS, port: await freePort() })
  const text = `${initial.replace('http_server:\n', 'http_server:\n  address: 127.0.0.1\n')}
workers: 1
log:
  level: none
stats:
  socket: none
`
  const json = JSON.stringify(parse(text))
  return workplace(t, ['centrifuge', 'ws'], { 'config.json': json, 'config.yaml': text, 'halley.json': json })
}

t.test('every block of this kind compiles', async t => {
  for (const { where, language, text } of PAGES.flatMap(blocksOf)) {
    if (language !== 'js' && language !== 'ts') continue
    const { diagnostics = [] } = ts.transpileModule(text, {
      reportDiagnostics: true,
      fileName: `block.${language}`,
      compilerOptions: { target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, allowJs: true },
    })
    const faults = diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '))
    t.same(faults, [], `${where}: ${HELP}`)
  }
})

t.test('blocks run against a gateway', { skip: withoutProgram('curl') }, async t => {
  const port = await freePort()
  const profile = developmentProfile(KEY)
  const gateway = await startGateway(t, {
    ...profile,
    workers: 1,
    http_server: { address: '127.0.0.1', port },
  })
  const here = text =>
    text
      .replaceAll(/http:\/\/127\.0\.0\.1:800[01]/g, gateway.url)
      .replaceAll('ws://127.0.0.1:8000', gateway.url.replace('http', 'ws'))
      .replaceAll('wss://example.com', gateway.url.replace('http', 'ws'))
      .replaceAll(/\b(?:THE_KEY|KEY)\b/g, KEY)

  for (const { where, language, text } of blocks) {
    if (language !== 'sh') continue
    t.test(where, async t => {
      const folder = await configured(t)
      if (text.includes('config init')) await rm(join(folder, 'config.yaml'))
      const env = { ROOT: root, FREE_PORT: String(await freePort()), HALLEY_WORKERS: '1' }
      const { code, text: said } = await run(t, 'bash', ['-c', `${PRELUDE}\n${here(text)}`], {
        cwd: folder,
        env,
      })
      t.equal(code, 0, where, { said, help: HELP })
    })
  }

  for (const { where, page, language, text } of blocks) {
    if (language !== 'js' && language !== 'ts') continue
    t.test(where, async t => {
      const program = PROGRAMS.find(each => each.page === page && text.includes(each.part))
      if (!program) return t.fail(`${where}: it is not in PROGRAMS of test/docs/blocks.slow.js; ${HELP}`)
      const folder = await configured(t)
      const whole = [program.before ?? '', text, program.after ?? ''].join('\n')
      const own = here(whole).replaceAll('127.0.0.1:3000', `127.0.0.1:${await freePort()}`)
      await writeFile(
        join(folder, 'program.js'),
        own.replaceAll('listen(3000)', `listen(${/127\.0\.0\.1:(\d+)\/rpc/.exec(own)?.[1]})`),
      )
      const { code, text: said } = await run(t, process.execPath, ['program.js'], {
        cwd: folder,
        env: { HALLEY_API_KEY: KEY },
      })
      t.equal(code, 0, where, { said, help: HELP })
    })
  }
})
