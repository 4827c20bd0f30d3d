import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import t from 'tap'
import { diagnose, PLACES, readFacts, recipes, table } from '../../../src/metrics/doctor/index.js'
import { halley, spawnHalley } from '../../kit/cli.js'
import { unless } from '../../kit/needs.js'
import { container, ec2, folders, garbled, old } from './machines.js'

/** Older versions have no --dry-run. */
const DRY = spawnSync('sysctl', ['--help'], { encoding: 'utf8' }).stdout?.includes('--dry-run') ?? false

/** @param {string[]} args behind `doctor` @returns {Promise<{code: number | undefined, out: string, err: string}>} */
const doctor = (...args) => halley(['doctor', ...args], { cwd: '/' })

/** @param {import('./machines.js').Tree} tree */
const machine = (t, tree) => t.testdir(folders(tree, target => t.fixture('symlink', target)))

t.test('exits with 0 if the number can be reached, else with 1, obstacles and maximum', async t => {
  const root = machine(t, ec2())
  const good = await doctor('--root', root, '-n', '500k')
  t.equal(good.code, 0)
  t.match(good.out, /^500,000 connections \(server\) can be reached with 8 workers; maximum:/m)
  const bad = await doctor('--root', root, '--connections', '1m')
  t.equal(bad.code, 1)
  t.equal(bad.err, '')
  t.match(
    bad.out,
    /cannot be reached: net\.ipv4\.tcp_mem\. The maximum\s+now is about 748,000, with 8 workers\.\n\nTo change the settings: --print sysctl, or --write DIR\.\n$/,
  )
  const drone = await doctor('--root', root, '-n', '60000', '--role', 'drone')
  t.equal(drone.code, 1)
  t.match(drone.out, /ip_local_port_range.*about\s+28,200/s)
  t.equal((await doctor('--root', root, '-n', '60000', '--role', 'drone', '--addresses', '3')).code, 0)
})

t.test('the last line names the number of workers if the default is too low', async t => {
  const tree = ec2()
  const limits = tree['proc/self/limits'].replace(/1048576 /, '20000   ')
  const root = machine(t, { ...tree, 'proc/self/limits': limits })
  const { code, out } = await doctor('--root', root, '-n', '140k')
  t.equal(code, 0)
  const last = out.slice(out.indexOf('140,000 connections (server)')).replaceAll('\n', ' ')
  t.match(
    last,
    /^140,000 connections \(server\) can be reached with 9 workers \(`workers: 9`; the default of 8 holds about 138,000\); maximum: about [\d,]+ with \d+ workers/,
  )
  t.match(
    (await doctor('--root', root, '-n', '140k', '--workers', '8')).out,
    /cannot be reached: nofile\. The maximum\s+now\s+is\s+about\s+138,000, with 8 workers\./,
  )
})

t.test('without a number it uses the default and says so', async t => {
  t.match(
    (await doctor('--root', machine(t, ec2()))).out,
    /^halley doctor: 100,000 connections \(no --connections given\)/,
  )
})

t.test('an invalid command line is one line and exit code 2', async t => {
  const root = machine(t, ec2())
  for (const line of [
    ...['-n 0', '-n many', '-n 2000m', '-n -5', '--role client', '--print grub', '--print sysctl --json'],
    ...['--rate 1e3', '--workers 0', '--conections 5', 'more'],
  ]) {
    const { code, out, err } = await doctor('--root', root, ...line.split(' '))
    t.equal(code, 2, line)
    t.equal(out, '')
    t.match(err, /^halley: doctor: [^\n]+\n$/)
  }
})

t.test('prints one line without /proc, where nothing is mounted on it, and outside Linux', async t => {
  for (const tree of [{}, { proc: {}, sys: {} }]) {
    const root = t.testdir(tree)
    t.same(await doctor('--root', root), {
      code: 1,
      out: '',
      err: `halley: doctor requires /proc and /sys, which are missing in ${root}\n`,
    })
  }
  t.intercept(process, 'platform', { value: 'darwin' })
  t.same(await doctor('-n', '100k'), {
    code: 1,
    out: '',
    err: 'halley: doctor requires /proc and /sys, which exist only on Linux (this is darwin)\n',
  })
})

t.test('the table fits 80 columns, with optional colours and a mark on each line', async t => {
  for (const tree of [ec2(), container(), old(), garbled()]) {
    const facts = readFacts(machine(t, tree))
    for (const role of /** @type {const} */ (['server', 'drone'])) {
      for (const connections of [100_000, 1_000_000_000]) {
        const diagnosis = diagnose(facts, { connections, role })
        const plain = table(diagnosis)
        t.equal(stripVTControlCharacters(plain), plain)
        t.equal(stripVTControlCharacters(table(diagnosis, { colours: true })), plain, 'colours only')
        const wide = plain.split('\n').filter(line => line.length > 80)
        t.same(wide, [])
        t.equal(plain.match(/^[✓!✗?] /gm)?.length, diagnosis.findings.length)
      }
    }
  }
})

t.test('names and values of the machine cannot control the terminal', async t => {
  const diagnosis = diagnose(readFacts(machine(t, ec2())), { connections: 100_000, role: 'server' })
  const [finding] = diagnosis.findings
  Object.assign(finding, { id: 'a\x9b31m', is: 'b\x1b[31m', should: 'c\u202e', why: 'd\x7f' })
  diagnosis.notes.push('e\u2028')
  const text = table(diagnosis, { colours: true })
  t.notMatch(text, /\x1b(?!\[\d+m)|\x1b\[31mb|[\x7f-\x9f\u2028\u202e]/)
  for (const escaped of ['a\\u009b31m', 'b\\u001b[31m', 'c\\u202e', 'd\\u007f', 'e\\u2028'])
    t.ok(text.includes(escaped), escaped)
})

t.test('--json prints the same data', async t => {
  const { code, out } = await doctor('--root', machine(t, ec2()), '-n', '1m', '--json')
  t.equal(code, 1)
  const report = JSON.parse(out)
  t.match(report, {
    connections: 1_000_000,
    role: 'server',
    rate: 5000,
    workers: 8,
    reachable: false,
    largest: 748_944,
    obstacles: ['net.ipv4.tcp_mem'],
    notes: [],
    nofile: null,
    written: [],
    machine: { kernel: '6.8.0-1021-aws', cores: 8, container: null },
  })
  for (const found of report.findings) {
    t.same(Object.keys(found).sort().join(' '), 'changes group id is reach setting should status why')
    t.ok(['ok', 'tight', 'too low', 'cannot tell'].includes(found.status))
  }
})

t.test('--print prints only the file', async t => {
  const root = machine(t, old())
  const print = async (/** @type {string} */ name, /** @type {string[]} */ ...more) => {
    const { code, out, err } = await doctor('--root', root, '-n', '200k', '--print', name, ...more)
    t.same([code, err], [0, ''])
    return out
  }
  t.match(await print('sysctl'), /^# halley doctor: 200,000 connections, role server\n/)
  t.match(await print('limits'), /^\* soft nofile 262144\n/)
  t.equal(await print('service'), '[Service]\nLimitNOFILE=262144\n')
  t.notMatch(await print('sysctl'), /nr_open/)
  t.match(await print('sysctl', '--all'), /^fs\.nr_open = 1048576$/m)
  const fine = await doctor('--root', machine(t, ec2()), '-n', '1000', '--print', 'limits')
  t.equal(fine.out, '# no change needed\n')
})

t.test('--write writes the files and keeps earlier settings', async t => {
  const root = machine(t, old())
  const to = join(root, 'out')
  const { code, out } = await doctor('--root', root, '-n', '200k', '--write', to)
  t.equal(code, 1, 'the number cannot be reached yet')
  for (const place of Object.values(PLACES)) t.match(out, `${join(to, place)} written.`)
  t.match(out, /sysctl --system/)
  const sysctl = () => readFileSync(join(to, PLACES.sysctl), 'utf8')
  const before = sysctl()
  t.match(before, /^net\.core\.somaxconn = 4096$/m)
  t.equal(statSync(join(to, PLACES.sysctl)).mode & 0o777, 0o644)
  // As after `sysctl --system`.
  for (const [, key, value] of before.matchAll(/^([\w.-]+) = (.*)$/gm))
    writeFileSync(join(root, 'proc/sys', key.replaceAll('.', '/')), `${value}\n`)
  await doctor('--root', root, '-n', '200k', '--write', to)
  t.equal(sysctl(), before)
  t.same(readdirSync(join(to, 'etc/sysctl.d')), ['90-halley.conf'], 'no draft is left')
})

t.test('no file is written if nothing changes', async t => {
  const root = machine(t, ec2())
  for (const [file, text] of [
    ['core/netdev_max_backlog', '16384'],
    ['core/somaxconn', '4096'],
    ['ipv4/tcp_max_syn_backlog', '4096'],
    ['ipv4/tcp_migrate_req', '1'],
  ])
    writeFileSync(join(root, 'proc/sys/net', file), text)
  const { code, out } = await doctor('--root', root, '-n', '1000', '--write', join(root, 'out'))
  t.equal(code, 0)
  t.match(out, /No change needed: no file was written\.\n$/)
  t.notOk(existsSync(join(root, 'out')))
})

t.test('a file that cannot be written is one line and exit code 1', async t => {
  const root = machine(t, ec2())
  writeFileSync(join(root, 'file'), '')
  const { code, err } = await doctor('--root', root, '-n', '1000', '--write', join(root, 'file'))
  t.equal(code, 1)
  t.match(err, /^halley: \S+90-halley\.conf: cannot be written: part of the path is a file\n$/)
  mkdirSync(join(root, 'out', PLACES.sysctl), { recursive: true })
  const folder = await doctor('--root', root, '-n', '1000', '--write', join(root, 'out'))
  t.match(folder.err, /^halley: [^\n]+: cannot be written: is a folder\n$/)
  t.same(readdirSync(join(root, 'out/etc/sysctl.d')), ['90-halley.conf'], 'no draft is left')
  if (process.platform !== 'linux') return
  const nowhere = await doctor('--root', root, '-n', '1000', '--write', '/proc/nowhere')
  t.match(nowhere.err, /^halley: [^\n]+: cannot be written: a folder cannot be created there\n$/)
})

t.test(
  'checks this machine and prints only settings that it has',
  { skip: unless(process.platform === 'linux', 'the settings are those of Linux') },
  async t => {
    const { code, out } = await spawnHalley(['doctor', '-n', '100'])
    t.equal(code, 0)
    t.match(out, /^100 connections \(server\) can be reached/m)
    t.notMatch(out, '\x1b', 'no colours into a pipe')
    for (const role of ['server', 'drone']) {
      const printed = (await doctor('-n', '5m', '--role', role, '--print', 'sysctl', '--all')).out
      const lines = printed.split('\n').filter(line => line !== '' && !line.startsWith('#'))
      t.ok(lines.length > 3)
      for (const line of lines) {
        const [, key, value] = /^([a-z0-9_.-]+) = (\d+(?: \d+)*)$/.exec(line) ?? []
        const has = readFileSync(`/proc/sys/${key.replaceAll('.', '/')}`, 'utf8')
        t.equal(value.split(' ').length, has.trim().split(/\s+/).length, line)
      }
    }
  },
)

t.test(
  'sysctl reads what is printed',
  { skip: unless(DRY, 'there is no sysctl with --dry-run (Debian: apt-get install procps)') },
  async t => {
    const { out } = await doctor('-n', '5m', '--print', 'sysctl', '--all')
    // A container lacks some, such as net.core.netdev_max_backlog: sysctl refuses them, with a dash in front, too.
    const has = (/** @type {string} */ line) =>
      !line.includes('=') || existsSync(`/proc/sys/${line.replace(/^-| =.*/g, '').replaceAll('.', '/')}`)
    const recipe = recipes({ connections: 1e6, role: 'drone' }).sysctl.split('\n').filter(has).join('\n')
    t.match(recipe, /^net\..* = \d/m)
    const folder = t.testdir({ 'own.conf': out, 'recipe.conf': recipe })
    for (const name of ['own.conf', 'recipe.conf']) {
      const flags = ['--dry-run', '--load', join(folder, name)]
      const { status, stderr } = spawnSync('sysctl', flags, { encoding: 'utf8' })
      t.equal(status, 0, stderr)
    }
  },
)
