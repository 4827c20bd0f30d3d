import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('..', import.meta.url))
/** The layers: a part may import the parts before it. Also in docs/architecture.md. */
const ORDER = [
  'base',
  'config',
  'metrics',
  'metrics/doctor',
  'clients/server',
  'channels/broker',
  'clients/protocol',
  'channels/hub',
  'clients/hooks',
  'clients/auth',
  'clients/session',
  'clients/transport',
  'backends/api',
  'backends/hooks',
  'backends/lifecycle',
  'backends/queues',
  'metrics/prometheus',
  'pages/web',
  'pages/files.js',
  'pages/demo',
  'pages/admin',
  'pages/report',
  'processes/messages.js',
  'processes/child.js',
  'processes/queues',
  'processes/worker',
  'processes/primary',
  'index.js',
  'cli',
]
/** Files served to the demo page in addition to its own. */
const SERVED = ['src/pages/demo/page/long-poll-socket.js', 'src/pages/web/uplot.js']
/** The only file that imports blessed, and the files that load it on demand. */
const BLESSED = 'dashboard/terminal/terminal.js'
const LOADS_BLESSED = ['dashboard/command.js', 'fleet/status/index.js']
/** Files of the gateway that the dashboard may import. */
const OPEN_TO_DASHBOARD =
  /^(?:dashboard\/|blessed$|node:|src\/(?:base\/(?:format|terminal-text|dashboard-exit|version)|metrics\/(?:schema|limits|table)|cli\/(?:args|command|local-gateway))\.js$)/
/** Composition root of the command line. */
const COMMAND_LINE = 'bin/main.js'
/** Files that the fleet may import: published interfaces and helpers. */
const OPEN_TO_FLEET =
  /^(?:fleet\/|node:|src\/(?:metrics\/(?:schema|limits|tick-histogram|csv-\w+)|cli\/(?:args|command)|config\/nearest|base\/(?:format|terminal-text|version))\.js$|src\/(?:pages\/report|metrics\/doctor)\/|dashboard\/(?:terminal|chart|view)\/|dashboard\/(?:chart|health|panels\/parts)\.js$)/
/** Control servers for measurements, built on the bare libraries. */
const CONTROLS = 'fleet/targets/controls.js'
/** The only files that are copied to the drones' machines. */
const IN_DRONE = /^fleet\/(?:drone|link|statistics)\/|^fleet\/channel-template\.js$/
const OPEN_TO_DRONE =
  /^(?:fleet\/(?:drone|link|statistics)\/|fleet\/channel-template\.js$|node:|src\/(?:metrics\/tick-histogram|base\/(?:terminal-text|version))\.js$)/
const PACKAGES_OF_FLEET = [
  ['@aws-sdk/client-ec2', 'fleet/providers/ec2'],
  ['ws', CONTROLS],
  ['uWebSockets.js', CONTROLS],
]
const FLEET_ROOTS =
  /^fleet\/(?:cli\/|drone\/(?:bootstrap|main)\.js$|controller\/daemon\.js$|runner\/supervisor\.js$)/
const ROOTS = [
  'src/processes/child.js',
  'src/processes/worker/main.js',
  'src/processes/queues/main.js',
  'src/processes/primary/worker-pool.js',
  'src/processes/primary/telemetry.js',
  'src/processes/primary/primary.js',
  'src/processes/primary/serve.js',
  'src/index.js',
]

/**
 * @param {string} folder
 * @param {RegExp} name
 * @returns {string[]} paths from the root of the repository
 */
function filesOf(folder, name) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && name.test(entry.name))
    .map(entry => relative(root, join(entry.parentPath ?? entry.path, entry.name)).replaceAll('\\', '/'))
    .sort()
}

/** @param {string} file */
const read = file => readFileSync(join(root, file), 'utf8')

/**
 * @param {string} file
 * @returns {string} its text without comments, which may import any type
 */
const code = file =>
  read(file)
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s*\/\/.*$/gm, '')

/**
 * @param {string} file
 * @returns {string[]} its static and dynamic imports: paths from the root, or package names
 */
function importsOf(file) {
  const found = code(file).matchAll(
    /(?:^import\b[^'";]*?|^export\b[^'"=;(]*?\bfrom\s+|\bimport\()'([^']+)'/gm,
  )
  return [...found].map(([, target]) =>
    target.startsWith('.') ? join(dirname(file), target).replaceAll('\\', '/') : target,
  )
}

/** @param {string} file in src/ */
function partOf(file) {
  const path = file.slice('src/'.length)
  const parts = ORDER.filter(part => path === part || path.startsWith(`${part}/`))
  return parts.sort((a, b) => b.length - a.length)[0]
}

/**
 * @param {string} file
 * @returns {string[]} files from which its comments import types
 */
function typeImportsOf(file) {
  const found = read(file).matchAll(/(?:@import [^;]*?from |\bimport\()'(\.[^']+)'/g)
  return [...found].map(([, target]) => join(dirname(file), target).replaceAll('\\', '/'))
}

const sources = filesOf('src', /\.js$/)
const dashboard = filesOf('dashboard', /\.js$/)
const fleet = filesOf('fleet', /\.js$/)
const scripts = [...filesOf('bin', /\.js$/), ...sources, ...dashboard, ...fleet]
/** @type {Map<string, string[]>} */
const graph = new Map(scripts.map(file => [file, importsOf(file)]))

/**
 * @param {(file: string, target: string) => boolean} condition
 * @returns {string[]} the imports that meet the condition
 */
const importsWhere = condition =>
  [...graph].flatMap(([file, targets]) =>
    targets.filter(target => condition(file, target)).map(target => `${file} imports ${target}`),
  )

t.test('finds imports', async t => {
  t.ok(graph.get('src/processes/worker/main.js')?.includes('src/channels/hub/hub.js'))
  t.ok(graph.get('src/processes/worker/main.js')?.includes('src/pages/demo/index.js'), 'dynamic imports')
  t.ok(graph.get('src/clients/server/node.js')?.includes('ws'))
  t.notOk(graph.get('src/channels/hub/hub.js')?.includes('src/clients/session/session.js'), 'no type imports')
})

t.test('every file belongs to a layer, and imports follow the layers, including types', async t => {
  t.same(
    sources.filter(file => !partOf(file)),
    [],
    'files without a layer',
  )
  const wrong = sources.flatMap(file =>
    [...(graph.get(file) ?? []), ...typeImportsOf(file)]
      .filter(target => target.startsWith('src/') && !SERVED.includes(target))
      .filter(target => ORDER.indexOf(partOf(target)) > ORDER.indexOf(partOf(file)))
      .map(target => `${file} imports ${target}`),
  )
  t.same([...new Set(wrong)], [])
})

t.test('docs/architecture.md shows the order of imports', async t => {
  const [, block] = /follow this order;[\s\S]*?```\n([^`]*)```/.exec(read('docs/architecture.md')) ?? []
  t.same(
    block
      ?.split(/\s*(?:<-|,)\s*|\n/)
      .filter(Boolean)
      .map(part => part.trim()),
    ORDER,
  )
})

t.test('there are no import cycles', async t => {
  /** @type {Set<string>} */
  const done = new Set()
  /** @type {string[]} */
  const cycles = []
  /**
   * @param {string} file
   * @param {string[]} way
   */
  const walk = (file, way) => {
    if (way.includes(file)) cycles.push([...way.slice(way.indexOf(file)), file].join(' -> '))
    if (done.has(file) || way.includes(file)) return
    for (const target of graph.get(file) ?? []) if (graph.has(target)) walk(target, [...way, file])
    done.add(file)
  }
  for (const file of scripts) walk(file, [])
  t.same(cycles, [])
})

t.test('only composition roots import drivers', async t => {
  const wrong = importsWhere((file, target) => {
    const outside = (/** @type {string} */ folder) => !file.startsWith(folder) && !ROOTS.includes(file)
    if (target === 'src/clients/server/uws.js' || target === 'src/clients/server/node.js')
      return file !== 'src/clients/server/index.js'
    if (/^src\/clients\/server\/(?:uws|node)/.test(target)) return !file.startsWith('src/clients/server/')
    if (target === 'ws' || target === 'uWebSockets.js')
      return outside('src/clients/server/') && file !== CONTROLS
    // Workers import no engine; the primary hosts the embedded broker.
    if (target === 'src/channels/broker/embedded/host.js') return outside('src/channels/broker/')
    return /^src\/channels\/broker\/\w+\//.test(target) && !file.startsWith('src/channels/broker/')
  })
  t.same(wrong, [])
})

t.test('every import exists', async t => {
  const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(read('package.json'))
  const packages = new Set(Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }))
  const missing = importsWhere((_file, target) => {
    if (target.startsWith('node:')) return false
    if (/^(?:bin|src|dashboard|fleet)\//.test(target)) return !graph.has(target) && !SERVED.includes(target)
    return !packages.has(target)
  })
  t.same(missing, [])
})

t.test('blessed is loaded only for drawing', async t => {
  const importers = (/** @type {string} */ target) =>
    [...graph].filter(([, targets]) => targets.includes(target)).map(([file]) => file)
  t.same(importers('blessed'), [BLESSED])
  t.same(importers(BLESSED).sort(), LOADS_BLESSED.toSorted())
  for (const file of LOADS_BLESSED)
    t.notMatch(code(file), /^import .*terminal\/terminal\.js'/m, `${file} imports it on demand`)
})

t.test('the dashboard imports only published interfaces of the gateway', async t => {
  const wrong = importsWhere((file, target) => {
    if (dashboard.includes(file)) return !OPEN_TO_DASHBOARD.test(target)
    // The fleet shares its terminal code.
    if (file === COMMAND_LINE || fleet.includes(file)) return false
    return target.startsWith('dashboard/')
  })
  t.same(wrong, [])
})

t.test(
  'the fleet imports only published interfaces of the gateway; drones import only what is copied to them',
  async t => {
    const wrong = importsWhere((file, target) => {
      if (!fleet.includes(file)) return file !== COMMAND_LINE && target.startsWith('fleet/')
      const owners = PACKAGES_OF_FLEET.filter(([name]) => name === target).map(([, folder]) => folder)
      if (owners.length > 0) return !owners.some(folder => file.startsWith(folder))
      return !(IN_DRONE.test(file) ? OPEN_TO_DRONE : OPEN_TO_FLEET).test(target)
    })
    t.same(wrong, [])
  },
)

t.test('only commands and composition roots access the process', async t => {
  const wrong = [...sources, ...dashboard, ...fleet].filter(file => {
    if (ROOTS.includes(file) || file.startsWith('src/cli/') || FLEET_ROOTS.test(file)) return false
    return /\bprocess\.(?:exit|on|once|env)\b/.test(code(file))
  })
  t.same(wrong, [])
})

/** Uses of a program in a test file, and the calls that skip the test if it is missing. */
const SKIPS = /** @type {[RegExp, RegExp][]} */ ([
  [/\bstart(?:Redis|Cluster|Sentinels)\(/, /\b(?:needsRedis|withoutRedis)\(|withoutProgram\('redis-server'/],
  [/\bTmux\.(?:start|shell)\(/, /\bneedsTmux\(/],
  [/\bopenPage\(/, /\bneedsChromium\(/],
  [/'uws', 'node'\]|import\('uWebSockets\.js'\)/, /\bskipDriver\(/],
])

t.test('tests that need Redis, tmux, Chromium or uWebSockets.js are skipped without it', async t => {
  const wrong = filesOf('test', /\.(?:test|slow)\.js$/).filter(file => {
    const text = code(file)
    return SKIPS.some(([uses, skips]) => uses.test(text) && !skips.test(text))
  })
  t.same(wrong, [])
})
