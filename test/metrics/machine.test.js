import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { cpus, freemem, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { MachineSampler } from '../../src/metrics/machine.js'
import { ProcFile, pageSize } from '../../src/metrics/proc-files.js'
import { unless, withoutProgram } from '../kit/needs.js'
import { until } from '../kit/wait.js'
import { meminfo, netstat, sockstat } from './proc-texts.js'

const linux = { skip: unless(process.platform === 'linux', 'this machine has no /proc') }
const GB = 1024 ** 3

/** @param {string} folder @param {Record<string, string>} files texts by path */
function write(folder, files) {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

/**
 * Lines of /proc/net/dev.
 * @param {Record<string, [rx: number, tx: number]>} interfaces bytes; a packet has a thousand
 */
const dev = interfaces =>
  Object.entries(interfaces)
    .map(([name, [rx, tx]]) => `${name}: ${rx} ${rx / 1000} 0 0 0 0 0 0 ${tx} ${tx / 1000} 0 0 0 0 0 0\n`)
    .join('')

/** A machine whose figures a test writes. @param {any} t @param {Record<string, string>} [more] */
function fakeMachine(t, more = {}) {
  const folder = t.testdir()
  let now = 0
  const files = {
    'proc/stat': 'cpu  100 0 100 800 0 0 0 0 0 0\n',
    'proc/meminfo': meminfo,
    'proc/net/sockstat': sockstat,
    'proc/net/dev': dev({ lo: [1000, 1000], eth0: [1000, 1000] }),
    'proc/net/netstat': netstat,
    'proc/sys/fs/file-nr': '1151\t0\t2466170\n',
    ...more,
  }
  write(folder, files)
  const watch = new MachineSampler({
    proc: join(folder, 'proc'),
    net: join(folder, 'net'),
    groups: { cgroup: join(folder, 'proc/self/cgroup'), mounts: join(folder, 'groups') },
    clock: () => now,
  })
  t.teardown(() => watch.close())
  return {
    watch,
    /** @param {Record<string, string>} changed texts by path; a second passes */
    second(changed) {
      write(folder, changed)
      now += 1000
      return watch.sample()
    },
  }
}

t.test('CPU shares cover the time since the last sample', async t => {
  const machine = fakeMachine(t)
  const sample = machine.second({ 'proc/stat': 'cpu  130 10 110 930 10 5 5 0 0 0\n' })
  t.same(sample.cpu, { user: 0.2, system: 0.1, idle: 0.65, iowait: 0.05, steal: 0 })
  t.equal(machine.second({}).cpu, null, 'no tick has passed')
  const back = machine.second({ 'proc/stat': 'cpu  150 10 110 900 10 5 5 0 0 0\n' })
  // Idle time can decrease.
  t.same(back.cpu, { user: 1, system: 0, idle: 0, iowait: 0, steal: 0 })
})

t.test('rates are per second, and a packet on a bridge counts once', async t => {
  const machine = fakeMachine(t, { 'net/eth0/device': '' })
  const sample = machine.second({
    'proc/net/dev': dev({ lo: [9000, 9000], eth0: [5000, 3000], docker0: [4000, 4000] }),
  })
  t.match(sample.network, { rx_bytes: 4000, tx_bytes: 2000, rx_packets: 4, tx_packets: 2 })
  t.same(Object.keys(sample.network?.interfaces ?? {}), ['lo', 'eth0', 'docker0'])
  t.equal(sample.network?.interfaces.lo.rx_bytes, 8000)
  t.equal(sample.network?.interfaces.docker0.rx_bytes, 4000, 'it is new')
  const reset = machine.second({ 'proc/net/dev': dev({ lo: [9000, 9000], eth0: [1000, 1000] }) })
  t.equal(reset.network?.rx_bytes, 0, 'after a reset of its counters')
})

t.test('the cached type of a removed interface is dropped', async t => {
  const machine = fakeMachine(t, { 'net/eth0/device': '' })
  const both = (/** @type {number} */ bytes) =>
    dev({ lo: [1000, 1000], eth0: [2000, 2000], eth1: [bytes, bytes] })
  t.equal(machine.second({ 'proc/net/dev': both(1000) }).network?.rx_bytes, 1000)
  machine.second({ 'proc/net/dev': dev({ lo: [1000, 1000], eth0: [1000, 1000] }), 'net/eth1/device': '' })
  t.equal(machine.second({ 'proc/net/dev': both(3000) }).network?.rx_bytes, 1000 + 3000)
})

t.test('in a container, all interfaces except loopback count', async t => {
  const machine = fakeMachine(t)
  const sample = machine.second({ 'proc/net/dev': dev({ lo: [9000, 9000], eth0: [5000, 3000] }) })
  t.match(sample.network, { rx_bytes: 4000, tx_bytes: 2000 })
  const quiet = machine.second({ 'proc/net/dev': dev({ lo: [10000, 11000], eth0: [5000, 3000] }) })
  t.match(quiet.network, { rx_bytes: 1000, tx_bytes: 2000 }, 'the loopback interface alone has traffic')
})

t.test('overflows of listen queues are counted since the last sample', async t => {
  const machine = fakeMachine(t)
  t.same(machine.second({}).listen, { overflows: 0, drops: 0 })
  const [names, row, ...rest] = netstat.split('\n')
  const columns = row.split(' ')
  columns[names.split(' ').indexOf('ListenOverflows')] = '20'
  const sample = machine.second({ 'proc/net/netstat': [names, columns.join(' '), ...rest].join('\n') })
  t.same(sample.listen, { overflows: 8, drops: 0 })
})

t.test('the memory limit of a container applies', async t => {
  const own = 'groups/system.slice/halley.service'
  const machine = fakeMachine(t, {
    'proc/self/cgroup': '0::/system.slice/halley.service\n',
    'groups/system.slice/memory.max': `${8 * GB}\n`,
    [`${own}/memory.max`]: `${2 * GB}\n`,
    [`${own}/memory.current`]: `${GB}\n`,
    [`${own}/memory.stat`]: `anon 500\nfile ${GB / 2}\ninactive_file ${GB / 4}\nactive_file 0\nslab 4096\nslab_reclaimable 0\n`,
  })
  t.same(machine.second({}).memory, {
    total: 2 * GB,
    used: GB / 2,
    free: GB,
    available: GB * 1.25,
    caches: GB / 2,
    slab: 4096,
  })
  const raised = machine.second({ [`${own}/memory.max`]: 'max\n'.padEnd(12) })
  t.equal(raised.memory.total, 24684084 * 1024, 'without the limit')
})

t.test('control groups of version 1 may have the path of the host', async t => {
  const machine = fakeMachine(t, {
    'proc/self/cgroup': '9:name=systemd:/docker/abc\n4:memory:/docker/abc\n0::/\n',
    'groups/memory/memory.limit_in_bytes': `${GB}\n`,
    'groups/memory/memory.usage_in_bytes': `${GB / 2}\n`,
    'groups/memory/memory.stat': `total_cache ${GB / 4}\ntotal_inactive_file ${GB / 8}\ntotal_active_file 0\n`,
  })
  t.match(machine.second({}).memory, { total: GB, used: GB / 4, free: GB / 2, available: GB * 0.625 })
})

t.test('a limit above the memory of the machine does not apply', async t => {
  const machine = fakeMachine(t, {
    'proc/self/cgroup': '4:memory:/\n',
    'groups/memory/memory.limit_in_bytes': '9223372036854771712\n',
    'groups/memory/memory.usage_in_bytes': '1\n',
    'groups/memory/memory.stat': '',
  })
  t.equal(machine.second({}).memory.total, 24684084 * 1024)
})

t.test('outside Linux, values come from Node.js', async t => {
  const core = (/** @type {number} */ busy, /** @type {number} */ idle) => ({
    model: '',
    speed: 0,
    times: { user: busy / 2, nice: 0, sys: busy / 4, irq: busy / 4, idle },
  })
  const reads = [
    [core(100, 900), core(100, 900)],
    [core(100, 900), core(100, 900)],
    [core(300, 1100), core(100, 1100)],
  ]
  const watch = new MachineSampler({
    proc: join(t.testdir(), 'none'),
    readCores: () => reads.shift() ?? [],
  })
  const { load, ...sample } = watch.sample()
  t.match(sample, {
    cores: 2,
    cpu: { user: 0.1667, system: 0.1667, idle: 0.6667, iowait: 0, steal: 0 },
    memory: { total: totalmem(), slab: null },
    sockets: null,
    network: null,
    listen: null,
    files: null,
  })
  if (process.platform !== 'win32') t.equal(load?.length, 3)
  t.equal(watch.sample().cpu, null, 'unknown where the platform does not tell')
})

t.test('this machine', linux, async t => {
  const watch = new MachineSampler()
  t.teardown(() => watch.close())

  t.test('memory equals the output of `free`', { skip: withoutProgram('free', 'procps') }, async t => {
    const near = (/** @type {number} */ a, /** @type {number} */ b) => Math.abs(a - b) < memory.total * 0.05
    let { memory, cores, load } = watch.sample()
    let available = 0
    let others = ''
    // Other processes change the values between two reads: wait until they agree.
    await until(() => {
      memory = watch.sample().memory
      available = freemem()
      others = execFileSync('free', ['-b']).toString()
      const { memory: after } = watch.sample()
      return near(memory.free, after.free) && near(memory.caches, after.caches)
    })
    t.equal(cores, cpus().length)
    t.ok(memory.total <= totalmem() && memory.total > 0)
    if (memory.total === totalmem()) {
      t.ok(near(memory.available, available), `${memory.available} ~ ${available}`)
      const [, total, , free, , caches] = others.split('\n')[1].split(/\s+/).map(Number)
      t.equal(memory.total, total)
      t.ok(near(memory.free, free), `${memory.free} ~ ${free}`)
      t.ok(near(memory.caches, caches), `${memory.caches} ~ ${caches}`)
    }
    t.equal(load?.length, 3)
  })

  t.test('CPU shares add up to 1, and show work', async t => {
    watch.sample()
    const busy = 1 - 0.5 / cpus().length
    // A blocked process does no work, and a sample of that time shows none.
    let idle = 1
    await until(() => {
      const end = performance.now() + 300
      while (performance.now() < end);
      const { cpu } = watch.sample()
      const shares = Object.values(cpu ?? {})
      const sum = shares.reduce((a, b) => a + b, 0)
      t.ok(Math.abs(sum - 1) < 0.01, `${sum}`)
      idle = Number(cpu?.idle)
      return idle < busy
    })
  })

  t.test('sockets, traffic and files are counted', async t => {
    const server = createServer(socket => socket.resume())
    await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
    watch.sample()
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
    const clients = Array.from({ length: 50 }, () => connect(port, '127.0.0.1'))
    await Promise.all(clients.map(client => new Promise(resolve => client.once('connect', resolve))))
    const bytes = 4 * 1024 * 1024
    await new Promise(resolve => clients[0].write(Buffer.alloc(bytes), resolve))
    await sleep(50)
    const after = watch.sample()
    // Other tests open and close sockets, too.
    t.ok(Number(after.sockets?.tcp.inuse) >= 100, `${after.sockets?.tcp.inuse}`)
    t.ok(Number(after.sockets?.used) >= 100)
    t.ok(Number(after.files?.open) >= 100)
    const rate = after.network?.interfaces.lo.rx_bytes ?? 0
    t.ok(rate > bytes / 60, `${rate} bytes a second`)
    for (const client of clients) client.destroy()
    server.close()
  })

  t.test('files are reread each time, and tables completely', async t => {
    const file = ProcFile.open('/proc/uptime')
    const first = Number.parseFloat(file?.read() ?? '')
    await sleep(30)
    t.ok(Number.parseFloat(file?.read() ?? '') > first)
    file?.close()
    const maps = ProcFile.open('/proc/self/maps')
    t.ok(maps?.readTable().includes('[stack]'), 'also one that comes in many parts')
    maps?.close()
    t.equal(ProcFile.open('/proc/nothing'), null)
  })

  t.equal(pageSize(), Number(execFileSync('getconf', ['PAGESIZE'])))
})
