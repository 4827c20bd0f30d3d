import t from 'tap'
import { parseBytes, parseMemoryStat } from '../../src/metrics/control-groups.js'
import {
  parseCpu,
  parseFiles,
  parseInterfaces,
  parseListen,
  parseMemory,
  parseSockets,
} from '../../src/metrics/proc-files.js'
import { meminfo, netstat, sockstat } from './proc-texts.js'

t.test('nice counts as user time, interrupts as system time', async t => {
  const text =
    'cpu  1027621 621 166820 1280029 3211 5 27546 11234 0 0\ncpu0 511529 331 81630 646213 770 0 12429\n'
  t.same(parseCpu(text), {
    user: 1027621 + 621,
    system: 166820 + 5 + 27546,
    idle: 1280029,
    iowait: 3211,
    steal: 11234,
  })
  t.same(parseCpu('cpu  10 1 2 3'), { user: 11, system: 2, idle: 3, iowait: 0, steal: 0 }, 'an old kernel')
})

t.test('used memory excludes free memory and caches', async t => {
  const KB = 1024
  const memory = parseMemory(meminfo)
  t.same(memory, {
    total: 24684084 * KB,
    free: 23371084 * KB,
    caches: (290084 + 251456 + 329112) * KB,
    used: (24684084 - 23371084 - 290084 - 251456 - 329112) * KB,
    available: 23919520 * KB,
    slab: 371656 * KB,
  })
  const old = parseMemory(meminfo.replace(/MemAvailable.*\n/, ''))
  t.equal(old.available, memory.free + memory.caches, 'a kernel that does not tell what is available')
})

t.test('sockets of both families count, and their memory is in bytes', async t => {
  t.same(parseSockets(sockstat, 'TCP6: inuse 20\nUDP6: inuse 1\n', 4096), {
    used: 190,
    tcp: { inuse: 150, orphan: 2, time_wait: 1417, alloc: 154, memory: 33 * 4096 },
  })
  t.equal(parseSockets(sockstat, '', 16384).tcp.memory, 33 * 16384, 'pages are larger elsewhere')
  t.equal(parseSockets(sockstat, '', 4096).tcp.inuse, 130, 'a machine without IPv6')
})

t.test('interfaces without traffic are omitted', async t => {
  const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 29772677275 73037137    0  994    0     0          0         0 29772677275 73037137    0    0    0     0       0          0
  ifb0:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
  eth0:2241059953   54520    0    0    0     0          0         0  5553003   39369    0    0    0     0       0          0
`
  t.same(parseInterfaces(text), {
    lo: { rx_bytes: 29772677275, tx_bytes: 29772677275, rx_packets: 73037137, tx_packets: 73037137 },
    eth0: { rx_bytes: 2241059953, tx_bytes: 5553003, rx_packets: 54520, tx_packets: 39369 },
  })
})

t.test('overflows of listen queues are found by column name', async t => {
  t.same(parseListen(netstat), { overflows: 12, drops: 15 })
  t.equal(parseListen(netstat.replaceAll('Listen', 'Other')), null, 'where the kernel does not tell')
  t.equal(parseListen(''), null)
})

t.test('open files of the machine are those in use', async t => {
  t.same(parseFiles('1151\t51\t2466170\n'), { open: 1100, limit: 2466170 })
})

t.test('a control group without a limit is infinite', async t => {
  t.equal(parseBytes('536870912\n'), 536870912)
  t.equal(parseBytes('max\n'), Number.POSITIVE_INFINITY)
  t.equal(parseBytes(''), Number.POSITIVE_INFINITY)
})

t.test('caches are read from control groups of both versions', async t => {
  t.same(
    parseMemoryStat(
      'anon 100\nfile 5000\nkernel 9\ninactive_file 3000\nactive_file 1000\nslab_reclaimable 70\nslab 90\n',
    ),
    { caches: 5070, reclaimable: 4070, slab: 90 },
  )
  t.same(
    parseMemoryStat(
      'cache 1\ninactive_file 1\nactive_file 0\ntotal_cache 5000\ntotal_inactive_file 3000\ntotal_active_file 500\n',
    ),
    { caches: 5000, reclaimable: 3500, slab: null },
  )
})
