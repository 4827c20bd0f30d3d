import t from 'tap'
import { parseAddresses, parseList, parseMask } from '../../../src/metrics/doctor/facts.js'
import { readFacts } from '../../../src/metrics/doctor/index.js'
import { container, ec2, folders, garbled, old } from './machines.js'

/** @param {import('./machines.js').Tree} tree */
const factsOf = (t, tree) => readFacts(t.testdir(folders(tree, target => t.fixture('symlink', target))))

t.test('reads all facts of an EC2 instance', async t => {
  const facts = factsOf(t, ec2())
  t.match(facts, {
    kernel: '6.8.0-1021-aws',
    cores: 8,
    quota: null,
    memory: { total: 16077060 * 1024, available: 15400000 * 1024, limited: false },
    swap: { total: 0, used: 0 },
    hugePages: 'madvise',
    files: { soft: 1024, hard: 1048576 },
    timeWait: 3,
    listen: { overflows: 0, accepted: 5000 },
    packets: { packets: 8 * 0xa2b4, dropped: 0 },
    addresses: 1,
    container: null,
    readOnly: false,
  })
  t.same(facts.settings['net.ipv4.tcp_mem'], [187236, 249648, 374472])
  t.equal(facts.settings['net.netfilter.nf_conntrack_max'], null, 'not loaded')
  t.equal(facts.interfaces.length, 1, 'loopback has no card')
  const [card] = facts.interfaces
  t.match(card, { name: 'ens5', receive: 8, send: 8, steered: 0, chosen: 8 })
  t.same(
    card.interrupts.map(({ core }) => core),
    [0, 1, 2, 3, 4, 5, 6, 7],
    'without that of the management',
  )
})

t.test('interrupts are found by name if the card does not list them', async t => {
  const tree = Object.fromEntries(Object.entries(ec2()).filter(([path]) => !path.includes('msi_irqs')))
  const [card] = factsOf(t, { ...tree, 'sys/devices/pci0000:00/0000:00:05.0/vendor': '0x1d0f\n' }).interfaces
  t.equal(card.interrupts.length, 8)
})

t.test('without an effective affinity, the core with most interrupts counts', async t => {
  const tree = Object.entries(ec2({ core: () => 3 })).filter(([path]) => !path.includes('effective'))
  const [card] = factsOf(t, Object.fromEntries(tree)).interfaces
  t.same([...new Set(card.interrupts.map(({ core }) => core))], [3])
})

t.test('a card that is down is ignored', async t => {
  t.same(factsOf(t, { ...ec2(), 'sys/class/net/ens5/operstate': 'down\n' }).interfaces, [])
})

t.test('a container has the limits of its control group', async t => {
  t.match(factsOf(t, container()), {
    cores: 8,
    quota: 2,
    memory: { total: 1073741824, limited: true },
    container: 'Kubernetes',
    readOnly: true,
    interfaces: [],
    allFiles: null,
  })
})

t.test('reads facts of an old kernel', async t => {
  const facts = factsOf(t, old())
  t.match(facts, { cores: 2, quota: 1.5, hugePages: 'always', addresses: null, interfaces: [] })
  t.match(facts.memory, { available: 3310000 * 1024 }, 'what is free, and caches')
  t.match(facts.swap, { used: 1048576 * 1024 })
  t.equal(facts.settings['net.ipv4.tcp_moderate_rcvbuf'], null)
})

t.test('garbled or missing files give unknown values, not errors', async t => {
  for (const tree of [garbled(), {}]) {
    const facts = factsOf(t, tree)
    t.match(facts, { cores: null, quota: null, memory: null, swap: null, hugePages: null, files: null })
    t.match(facts, { allFiles: null, timeWait: null, listen: null, packets: null, addresses: null })
    t.ok(Object.values(facts.settings).every(value => value === null))
  }
})

t.test('parses lists, masks and addresses of the kernel', async t => {
  t.same(parseList('0-3,8\n'), [0, 1, 2, 3, 8])
  for (const text of ['', '0-', 'a', '0-99999999', '3-1x']) t.equal(parseList(text), null, text)
  t.equal(parseMask('00000000,0000000f\n'), 4)
  t.equal(parseMask('ffffffff,ffffffff,ffffffff'), 96)
  t.equal(parseMask('xyz'), null)
  const twice = '     |-- 10.0.0.5\n        /32 host LOCAL\n     |-- 10.0.0.6\n        /32 host LOCAL\n'
  t.equal(parseAddresses(`Main:\n${twice}Local:\n${twice}`), 2, 'each once')
})
