import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import WebSocket from 'ws'
import { SCHEMA_VERSION } from '../../src/metrics/schema.js'
import { bucketOf } from '../../src/metrics/tick-histogram.js'
import { testdir } from '../kit/folders.js'
import { startGateway } from '../kit/gateway.js'
import { mockSnapshots } from './mock.js'

const page = readFileSync(new URL('../../docs/stats.md', import.meta.url), 'utf8')

/** @param {string} title of a section of docs/stats.md */
function section(title) {
  const at = page.indexOf(`\n## ${title}\n`)
  if (at < 0) throw new Error(`no section ${title}`)
  const end = page.indexOf('\n## ', at + 1)
  return page.slice(at, end < 0 ? undefined : end)
}

/** @param {string} text @returns {string[]} what is in the first column of its table */
const firstColumn = text => [...text.matchAll(/^\| `([^`]+)` \|/gm)].map(([, field]) => field)

/** @param {string} text @returns {string[]} where the fields of a section are */
function places(text) {
  const line = /^At (.*)\.$/m.exec(text)?.[1] ?? ''
  return [...line.matchAll(/`([^`]+)`/g)].map(([, path]) => path)
}

const titles = [...page.matchAll(/^## (.+)$/gm)].map(([, title]) => title)
const documented = [
  ...firstColumn(section('A snapshot')),
  ...titles
    .map(section)
    .flatMap(text => places(text).flatMap(place => firstColumn(text).map(field => `${place}.${field}`))),
]
/** @param {number} pid @returns {number} resident memory of a process in bytes, from the system */
const rssOf = pid =>
  1024 *
  Number(
    existsSync('/proc/self/status')
      ? /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
      : execFileSync('ps', ['-o', 'rss=', '-p', `${pid}`]),
  )
const isHead = (/** @type {string} */ path) =>
  documented.some(other => other.startsWith(`${path}.`) || other.startsWith(`${path}[`))
const fields = documented.filter(path => !isHead(path))

/** User-defined names in a path: `<name>`. */
const patterns = fields.map(
  path => new RegExp(`^${path.replace(/[.[\]^$]/g, '\\$&').replace(/<[\w ]+>/g, '[\\w -]+')}$`),
)

/** @param {any} value @param {string} path @param {Map<string, any>} leaves by path */
function collect(value, path, leaves) {
  if (Array.isArray(value)) for (const item of value) collect(item, `${path}[]`, leaves)
  else if (value === null || typeof value !== 'object') leaves.set(path, value)
  else
    for (const [name, inner] of Object.entries(value)) collect(inner, path ? `${path}.${name}` : name, leaves)
}

/** @param {Map<string, any>} leaves @returns {string[]} those that docs/stats.md does not have */
const unknown = leaves =>
  [...leaves]
    .filter(([path, value]) => {
      if (patterns.some(pattern => pattern.test(path))) return false
      // Absent objects are documented by their fields.
      return (
        value !== null || !fields.some(field => field.startsWith(`${path}.`) || field.startsWith(`${path}[`))
      )
    })
    .map(([path]) => path)

t.test('docs/stats.md has exactly the fields of a snapshot', async t => {
  /** @type {Map<string, any>} */
  const leaves = new Map()
  for (const options of [{ csv: true, down: 1, polls: true }, { elsewhere: true }, { engine: 'redis' }])
    for (const snapshot of mockSnapshots(options)) collect(snapshot, '', leaves)
  t.same(unknown(leaves), [])
  const paths = [...leaves.keys()]
  t.same(
    fields.filter((_, index) => !paths.some(path => patterns[index].test(path))),
    [],
    'all of them occur',
  )
  t.ok(fields.length > 150)
})

t.test('docs/stats.md has the version', async t => {
  t.match(section('Versions'), `now **${SCHEMA_VERSION}**`)
})

t.test('docs/stats.md describes the buckets', async t => {
  const start = (/** @type {number} */ index) => {
    const shift = Math.max(0, Math.floor(index / 64) - 1)
    return { from: (index - shift * 64) * 2 ** shift, width: 2 ** shift }
  }
  for (const us of [0, 1, 5, 127, 128, 129, 130, 255, 256, 1000, 12_345, 200_000, 9_999_999]) {
    const { from, width } = start(bucketOf(us / 1000))
    t.ok(from <= us && us < from + width, `${us} µs is in ${from}..${from + width}`)
  }
})

t.test('snapshots of a real gateway have the fields of docs/stats.md', async t => {
  const folder = testdir(t)
  // The path of a socket must be short.
  const path = join(tmpdir(), `halley-docs-${process.pid}.sock`)
  const gateway = await startGateway(t, {
    stats: {
      socket: path,
      csv: { file: join(folder, 'figures.csv') },
    },
  })
  const socket = connect(path)
  t.teardown(() => socket.destroy())
  /** @type {Map<string, any>} */
  const leaves = new Map()
  const client = new WebSocket(gateway.ws)
  t.teardown(() => client.close())
  client.on('open', () => client.send('{"id":1,"connect":{}}'))
  await gateway.api('publish', { channel: 'news', data: {} })
  /** @type {any} */
  let last
  /** @type {{pid: number, measured: number, is: number}[]} */
  let rss = []
  const near = (/** @type {{measured: number, is: number}} */ { measured, is }) =>
    Math.abs(measured - is) < is * 0.1
  for await (const line of createInterface({ input: socket })) {
    const message = JSON.parse(line)
    if (message.type === 'hello') {
      t.match(message, { schema: SCHEMA_VERSION, node: { url: gateway.url } })
      t.same(Object.keys(message).slice(1).sort(), ['events', 'history', 'node', 'schema'])
      continue
    }
    last = message.snapshot
    collect(last, '', leaves)
    const { workers, primary, counters } = last
    if (last.seq < 3 || !workers.every((/** @type {any} */ { sample }) => sample) || !counters.api.publish)
      continue
    rss = [primary, ...workers.map((/** @type {any} */ { sample }) => sample)].map(({ pid, memory }) => ({
      pid,
      measured: memory.rss,
      is: rssOf(pid),
    }))
    // A process that has just started may have grown since then.
    if (rss.every(near) || last.seq > 60) break
  }
  t.same(unknown(leaves), [])
  t.equal(last.counters.api.publish, 1)
  t.equal(rss.length, 3)
  for (const one of rss) t.ok(near(one), `${one.pid}: ${one.measured} ~ ${one.is}`)
})
