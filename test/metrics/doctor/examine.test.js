import t from 'tap'
import { diagnose, examine, filesOf, readFacts, recipes } from '../../../src/metrics/doctor/index.js'
import { tcpMemory } from '../../../src/metrics/doctor/recipes.js'
import { container, ec2, folders, garbled, old } from './machines.js'

/** @typedef {import('../../../src/metrics/doctor/facts.js').Facts} Facts */

/** @type {Record<string, Facts>} */
const MACHINES = {}
t.before(() => {
  for (const [name, tree] of Object.entries({
    ec2: ec2(),
    crowded: ec2({ core: () => 0 }),
    container: container(),
    old: old(),
    garbled: garbled(),
  }))
    MACHINES[name] = readFacts(
      `${t.testdir({ [name]: folders(tree, target => t.fixture('symlink', target)) })}/${name}`,
    )
})

/**
 * @param {Facts} facts @param {import('../../../src/metrics/doctor/examine.js').DoctorOptions} asked
 * @param {string} id
 */
const look = (facts, asked, id) => examine(facts, asked).find(found => found.id === id)

/** @param {Facts} facts @param {Record<string, number[]>} settings other values of the kernel @returns {Facts} */
const changed = (facts, settings) => ({ ...facts, settings: { ...facts.settings, ...settings } })

t.test('a fresh server: names the settings too low for a million, and the maximum', async t => {
  const { largest, obstacles, findings } = diagnose(MACHINES.ec2, { connections: 1_000_000 })
  t.same(obstacles, ['net.ipv4.tcp_mem'])
  t.equal(largest, 2 * 374_472, 'half a page for each')
  t.match(look(MACHINES.ec2, { connections: 1_000_000 }, 'nofile'), { status: 'ok', should: '138,500' })
  t.match(look(MACHINES.ec2, { connections: 1_000_000 }, 'interrupts of ens5'), {
    status: 'ok',
    is: '8 on 8 cores',
  })
  for (const { why, should, is } of findings) {
    t.notMatch(why, /\n/)
    t.ok(why.length > 10 && is !== '' && should !== undefined)
  }
})

t.test('the written settings make the number possible', async t => {
  for (const asked of [
    { connections: 1_000_000 },
    { connections: 60_000, role: /** @type {const} */ ('drone') },
  ]) {
    const { sysctl, limits } = filesOf(diagnose(MACHINES.ec2, asked))
    /** @type {Facts} */
    const after = structuredClone(MACHINES.ec2)
    for (const [, key, value] of (sysctl ?? '').matchAll(/^-?([\w.-]+) = (.*)$/gm))
      after.settings[key] = value.split(' ').map(Number)
    const files = /hard nofile (\d+)/.exec(limits ?? '')
    if (files !== null) after.files = { soft: Number(files[1]), hard: Number(files[1]) }
    const { obstacles, findings } = diagnose(after, asked)
    t.same(obstacles, [])
    t.same(
      findings.filter(({ status }) => status === 'tight').map(({ id }) => id),
      [],
    )
    t.same(filesOf(diagnose(after, asked)), { sysctl: null, limits: null, service: null }, 'nothing more')
  }
})

t.test('files of one process: the limit, and the number of workers that avoids it', async t => {
  const few = { ...MACHINES.ec2, cores: 2, files: { soft: 1024, hard: 20_000 } }
  const nofile = (/** @type {any} */ asked) => look(few, asked, 'nofile')
  t.match(nofile({ connections: 19_000, workers: 1 }), { status: 'ok', reach: 19_000 })
  t.match(nofile({ connections: 19_001, workers: 1 }), { status: 'too low', reach: 19_000 })
  t.match(nofile({ connections: 34_545, workers: 2 }), { status: 'ok', should: '20,000' })
  t.match(nofile({ connections: 34_546, workers: 2 }), { status: 'too low', reach: 34_545 })
  const more = nofile({ connections: 100_000 })
  t.equal(more?.status, 'tight')
  t.match(more?.why, /start 6 workers \(`workers: 6`\)/)
  t.match(nofile({ connections: 100_000, workers: 6 }), { status: 'ok' })
  t.match(nofile({ connections: 100_000, workers: 5 }), { status: 'too low' })
  t.match(
    nofile({ connections: 138_182 }),
    { status: 'too low', reach: 138_181 },
    'four for each core at most',
  )
  const unlimited = { ...few, files: { soft: 1024, hard: Number.POSITIVE_INFINITY } }
  t.match(look(unlimited, { connections: 5_000_000 }, 'nofile'), {
    status: 'ok',
    is: 'no limit',
    reach: null,
  })
  t.equal(filesOf(diagnose(unlimited, {}), { all: true }).limits, null, 'any limit would be lower')
})

t.test('ports of a drone are counted for each of its addresses', async t => {
  const ports = (/** @type {any} */ asked) =>
    look(MACHINES.ec2, { role: 'drone', ...asked }, 'net.ipv4.ip_local_port_range')
  t.match(ports({ connections: 28_232 }), { status: 'tight', reach: 28_232 })
  t.match(ports({ connections: 28_233 }), { status: 'too low', setting: { value: '1024 65535' } })
  t.match(ports({ connections: 100_000 })?.why, /100,000 need 2 addresses, but there is 1/)
  t.match(ports({ connections: 100_000, addresses: 50 }), { status: 'ok', reach: 50 * 28_232 })
  const wide = changed(MACHINES.ec2, { 'net.ipv4.ip_local_port_range': [500, 65_535] })
  t.match(look(wide, { connections: 60_000, role: 'drone' }, 'net.ipv4.ip_local_port_range'), {
    status: 'ok',
    changes: false,
  })
  t.equal(
    look(MACHINES.ec2, { role: 'server' }, 'net.ipv4.ip_local_port_range'),
    undefined,
    'a server opens no connections',
  )
})

t.test('checks whether the kernel moves handshakes of a replaced worker', async t => {
  const key = 'net.ipv4.tcp_migrate_req'
  t.match(look(MACHINES.ec2, {}, key), {
    is: '0',
    status: 'tight',
    setting: { key, value: '1' },
    changes: true,
  })
  const moved = changed(MACHINES.ec2, { [key]: [1] })
  t.match(look(moved, {}, key), { is: '1', status: 'ok', changes: false })
  t.match(look(MACHINES.old, {}, key), { is: '?', status: 'cannot tell', setting: null })
  t.equal(look(MACHINES.ec2, { role: 'drone' }, key), undefined, 'a drone does not listen')
  t.match(recipes({ connections: 1000, role: 'server' }).sysctl, /^-net\.ipv4\.tcp_migrate_req = 1$/m)
})

t.test('an old machine: every fault is found', async t => {
  const { findings, obstacles } = diagnose(MACHINES.old, { connections: 100_000 })
  const status = Object.fromEntries(findings.map(found => [found.id, found.status]))
  t.match(status, {
    nofile: 'too low',
    'net.ipv4.tcp_rmem': 'tight',
    'net.ipv4.tcp_wmem': 'cannot tell',
    'net.ipv4.tcp_moderate_rcvbuf': 'cannot tell',
    'net.core.somaxconn': 'tight',
    'net.ipv4.tcp_max_syn_backlog': 'tight',
    'net.ipv4.tcp_syncookies': 'tight',
    'net.ipv4.tcp_migrate_req': 'cannot tell',
    ListenOverflows: 'tight',
    'net.netfilter.nf_conntrack_max': 'too low',
    swap: 'tight',
    transparent_hugepage: 'tight',
    interrupts: 'cannot tell',
  })
  t.same(obstacles, ['nofile', 'net.netfilter.nf_conntrack_max'])
  t.match(look(MACHINES.old, { connections: 20_000, role: 'drone' }, 'TIME_WAIT'), { status: 'tight' })
  t.match(look(MACHINES.old, {}, 'net.core.netdev_max_backlog'), {
    status: 'cannot tell',
    why: /which is too many/,
  })
  t.match(look(MACHINES.old, {}, 'cores'), { is: '1.5 of 2 (limit)' })
})

t.test('conntrack: a table in use bounds connections, one that is only loaded does not yet', async t => {
  const key = 'net.netfilter.nf_conntrack_max'
  const at = (/** @type {number} */ connections) =>
    look(MACHINES.old, { connections, workers: 100 }, key)?.status
  t.equal(at(64_000), 'tight', 'with those that are there already')
  t.equal(at(64_001), 'too low')
  const idle = changed(MACHINES.old, { 'net.netfilter.nf_conntrack_count': [0] })
  t.match(look(idle, { connections: 100_000 }, key), { status: 'tight', reach: null })
  t.match(look(MACHINES.ec2, { connections: 1e6 }, key), { status: 'ok', is: 'not loaded', setting: null })
})

t.test('one core for all queues is found', async t => {
  t.match(look(MACHINES.crowded, {}, 'interrupts of ens5'), {
    status: 'tight',
    is: '8 on 1 core',
    should: /8 cores/,
  })
})

t.test('in a container, host settings are unknown and memory is limited by the group', async t => {
  const asked = { connections: 200_000 }
  const { notes, largest } = diagnose(MACHINES.container, asked)
  const hidden =
    'fs.nr_open fs.file-max net.ipv4.tcp_mem net.core.netdev_max_backlog net.netfilter.nf_conntrack_max'
  for (const id of hidden.split(' '))
    t.match(look(MACHINES.container, asked, id), { status: 'cannot tell', is: '?' }, id)
  t.match(look(MACHINES.container, asked, 'memory'), { status: 'too low', is: '932 MB of 1 GB (limit)' })
  t.ok(largest !== null && largest < 150_000 && largest > 100_000, `${largest}: with two workers, not eight`)
  t.match(notes.join(' '), /container \(Kubernetes\).*read-only/s)
})

t.test('unknown facts of a machine are no obstacle', async t => {
  const { findings, largest, obstacles } = diagnose(MACHINES.garbled, { connections: 1e6, role: 'drone' })
  t.same(obstacles, [])
  t.equal(largest, null)
  const known = findings.filter(({ status }) => status !== 'cannot tell').map(({ id }) => id)
  t.same(known, ['net.netfilter.nf_conntrack_max'], 'it is not loaded')
})

t.test('settings are never lowered, and "too low" means that the number cannot be reached', async t => {
  const wrong = []
  for (const facts of Object.values(MACHINES)) {
    for (const role of /** @type {const} */ (['server', 'drone'])) {
      for (const connections of [1, 1000, 65_535, 100_000, 1_048_576, 12_000_000, 1e9]) {
        for (const rate of [1, 100_000]) {
          for (const { id, status, reach, setting, changes } of examine(facts, {
            connections,
            role,
            rate,
          })) {
            if (
              status !== 'cannot tell' &&
              (reach !== null && reach < connections) !== (status === 'too low')
            )
              wrong.push(`${id} is ${status} and reaches ${reach} of ${connections}`)
            if (setting === null) continue
            const has = facts.settings[setting.key] ?? []
            const value = setting.value.split(' ').map(Number)
            if (!setting.value.match(/^[\d ]+$/)) wrong.push(`${id}: ${setting.value}`)
            if (status === 'ok' && changes && id !== 'net.ipv4.ip_local_port_range' && id !== 'fs.nr_open')
              wrong.push(`${id} is fine, and to be changed`)
            const lowered = has.some((number, i) => value[i] < number)
            if (lowered && !['net.ipv4.ip_local_port_range', 'net.ipv4.tcp_tw_reuse'].includes(id))
              wrong.push(`${id}: ${has} becomes ${value}`)
          }
        }
      }
    }
  }
  t.same(wrong, [])
})

t.test('TCP memory: one page per connection, at most half of the machine', async t => {
  t.same(tcpMemory(1_000_000), [500_000, 1_000_000, 2_000_000])
  t.same(tcpMemory(1_000_000, { page: 16_384 }), [500_000, 1_000_000, 2_000_000])
  const memory = 4 * 1024 ** 3
  t.same(tcpMemory(1_000_000, { memory }), [131_072, 262_144, 524_288])
})

t.test('recipes for an unknown machine are never below kernel defaults', async t => {
  const drone = recipes({ connections: 25_000, role: 'drone', memory: 1024 ** 3 })
  t.equal(drone.nofile, 65_536)
  t.match(drone.sysctl, /^net\.ipv4\.ip_local_port_range = 1024 65535$/m)
  t.match(drone.sysctl, /^net\.ipv4\.tcp_tw_reuse = 1$/m)
  t.match(drone.sysctl, /^-net\.netfilter\.nf_conntrack_max = 262144$/m, 'no fault where it is not loaded')
  t.match(drone.sysctl, /^net\.ipv4\.tcp_mem = 12500 25000 50000$/m)
  t.notMatch(drone.sysctl, /nr_open/)
  t.match(drone.limits, /^\* hard nofile 65536\n/m)
  t.match(drone.service, /^LimitNOFILE=65536$/m)
  t.notMatch(recipes({ connections: 25_000, role: 'drone' }).sysctl, /tcp_mem/, 'memory is not known')
  t.notMatch(
    recipes({ connections: 25_000, role: 'drone', memory: 64 * 1024 ** 3 }).sysctl,
    /tcp_mem/,
    'it has more by itself',
  )
  t.notMatch(recipes({ connections: 1, role: 'drone', comments: false }).sysctl, /#|\n\n/)
  const big = recipes({ connections: 12_000_000, role: 'server', memory: 64 * 1024 ** 3 })
  t.match(big.sysctl, /^fs\.nr_open = 16777216$/m)
  t.match(big.sysctl, /^net\.ipv4\.tcp_mem = \d+ \d+ 8388608$/m)
  t.equal(recipes({ connections: 1_000_000, role: 'server' }).nofile, 1_048_576)
})
