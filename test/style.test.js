import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('..', import.meta.url))
const MAX_LINES = 400

/** From the bottom to the top; parts of one row do not import each other. */
const LAYERS = [
  [
    'errors.js',
    'version.js',
    'log.js',
    'gc-rounds.js',
    'terminal-view.js',
    'config',
    'stats',
    'server',
    'charts',
    'demo/page',
  ],
  ['protocol', 'broker', 'admin/page'],
  ['auth'],
  ['hub'],
  ['session'],
  ['gateway.js', 'transport'],
  ['api', 'demo', 'metrics', 'report'],
  ['admin'],
  ['worker-pool.js', 'worker.js'],
  ['telemetry.js'],
  ['primary.js', 'index.js'],
  ['cli'],
]
/** Served to the demo page beside its own files, from outside of src/. */
const SERVED = ['src/demo/page/long-poll-socket.js', 'src/charts/uplot.js']
/** They start the dashboard, each in its way. */
const STARTS_DASHBOARD = ['src/cli/dashboard.js', 'src/terminal-view.js']
const ROOTS = ['src/worker.js', 'src/worker-pool.js', 'src/telemetry.js', 'src/primary.js', 'src/index.js']

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
 * @returns {string} its text without comments: types are imported there, and may name anything
 */
const code = file =>
  read(file)
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s*\/\/.*$/gm, '')

/**
 * @param {string} file
 * @returns {string[]} what it imports, now or later: paths from the root, or names of packages
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
  const parts = LAYERS.flat().filter(part => path === part || path.startsWith(`${part}/`))
  // The page's files are not those of the folder that serves them.
  return parts.sort((a, b) => b.length - a.length)[0]
}

/** @param {string} part */
const layerOf = part => LAYERS.findIndex(parts => parts.includes(part))

const sources = filesOf('src', /\.js$/)
const dashboard = filesOf('dashboard', /\.js$/)
const scripts = [...filesOf('bin', /\.js$/), ...sources, ...dashboard]
/** @type {Map<string, string[]>} */
const graph = new Map(scripts.map(file => [file, importsOf(file)]))

t.test('imports are found where they are', async t => {
  t.ok(graph.get('src/worker.js')?.includes('src/hub/hub.js'))
  t.ok(graph.get('src/worker.js')?.includes('src/demo/index.js'), 'later ones, too')
  t.ok(graph.get('src/server/node.js')?.includes('ws'))
  t.notOk(graph.get('src/hub/hub.js')?.includes('src/session/session.js'), 'types are none')
})

t.test('every file belongs to a layer, and imports go downward only', async t => {
  for (const file of sources) {
    const part = partOf(file)
    t.ok(part, `${file} belongs to a layer`)
    for (const target of graph.get(file) ?? []) {
      if (!target.startsWith('src/')) continue
      const below = partOf(target)
      if (below === part) continue
      t.ok(layerOf(below) < layerOf(part), `${file} imports ${target}`)
    }
  }
})

t.test('there are no cycles', async t => {
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

t.test('drivers are named only where the parts are put together', async t => {
  for (const [file, targets] of graph) {
    const inside = (/** @type {string} */ folder) => file.startsWith(folder) || ROOTS.includes(file)
    for (const target of targets) {
      if (/^src\/server\/(?:uws|node)/.test(target))
        t.ok(file.startsWith('src/server/'), `${file} imports ${target}`)
      if (target === 'src/server/uws.js' || target === 'src/server/node.js')
        t.equal(file, 'src/server/index.js')
      if (target === 'ws' || target === 'uWebSockets.js')
        t.ok(inside('src/server/'), `${file} imports ${target}`)
      if (/^src\/broker\/\w+\//.test(target)) t.ok(inside('src/broker/'), `${file} imports ${target}`)
    }
  }
})

t.test('everything that is imported is there', async t => {
  const { dependencies, optionalDependencies } = JSON.parse(read('package.json'))
  const packages = new Set(Object.keys({ ...dependencies, ...optionalDependencies }))
  for (const [file, targets] of graph) {
    for (const target of targets) {
      if (target.startsWith('node:')) continue
      const there = /^(?:src|dashboard)\//.test(target)
        ? graph.has(target) || SERVED.includes(target)
        : packages.has(target)
      t.ok(there, `${file} imports ${target}`)
    }
  }
})

t.test('the dashboard knows the gateway only by what it tells everybody', async t => {
  for (const file of dashboard) {
    for (const target of graph.get(file) ?? [])
      t.match(
        target,
        /^(?:dashboard\/|node:|src\/stats\/(?:schema|limits)\.js$)/,
        `${file} imports ${target}`,
      )
  }
  for (const [file, targets] of graph) {
    if (dashboard.includes(file) || STARTS_DASHBOARD.includes(file)) continue
    for (const target of targets) t.notMatch(target, /^dashboard\//, `${file} imports ${target}`)
  }
})

t.test(`no file has more than ${MAX_LINES} lines`, async t => {
  const files = [...filesOf('src', /\.(?:js|css|html)$/), ...dashboard]
  for (const file of files) {
    const lines = read(file).split('\n').length - 1
    t.ok(lines <= MAX_LINES, `${file}: ${lines}`)
  }
})

t.test('only commands and composition roots touch the process', async t => {
  for (const file of [...sources, ...dashboard]) {
    if (ROOTS.includes(file) || file.startsWith('src/cli/')) continue
    t.notMatch(code(file), /\bprocess\.(?:exit|on|once|env)\b/, file)
  }
})
