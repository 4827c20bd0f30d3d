// Machines as files of /proc and /sys: path -> text. A text that begins with -> is a symbolic link.

/** @typedef {Record<string, string>} Tree */

const limits = (
  /** @type {string} */ soft,
  /** @type {string} */ hard,
) => `Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max processes             126549               126549               processes 
Max open files            ${soft.padEnd(20)} ${hard.padEnd(20)} files     
Max locked memory         8388608              8388608              bytes     
`

const sysctl = (/** @type {Record<string, string>} */ values) =>
  Object.fromEntries(
    Object.entries(values).map(([key, value]) => [`proc/sys/${key.replaceAll('.', '/')}`, `${value}\n`]),
  )

const CORES = [0, 1, 2, 3, 4, 5, 6, 7]

/** @param {(queue: number) => number} core that serves the queue's interrupt */
const queues = core =>
  Object.fromEntries(
    CORES.flatMap(queue => [
      [`proc/irq/${27 + queue}/smp_affinity_list`, '0-7\n'],
      [`proc/irq/${27 + queue}/effective_affinity_list`, `${core(queue)}\n`],
      [`sys/class/net/ens5/queues/rx-${queue}/rps_cpus`, '00\n'],
      [`sys/class/net/ens5/queues/tx-${queue}/xps_cpus`, `${(1 << queue).toString(16).padStart(2, '0')}\n`],
      [`sys/devices/pci0000:00/0000:00:05.0/msi_irqs/${27 + queue}`, 'msix\n'],
    ]),
  )

/**
 * An instance of EC2 with 8 cores, 16 GB and a card with 8 queues, as Ubuntu starts it.
 * @param {{core?: (queue: number) => number}} [options] @returns {Tree}
 */
export const ec2 = ({ core = queue => queue } = {}) => ({
  'proc/sys/kernel/osrelease': '6.8.0-1021-aws\n',
  'proc/stat': `cpu  10 0 10 1000 0 0 0 0 0 0\n${CORES.map(i => `cpu${i} 1 0 1 100 0 0 0 0 0 0\n`).join('')}`,
  'proc/self/status': 'Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n',
  'proc/self/cgroup': '0::/user.slice/user-1000.slice/session-1.scope\n',
  'proc/1/cgroup': '0::/init.scope\n',
  'proc/meminfo':
    'MemTotal:       16077060 kB\nMemFree:        15012340 kB\nMemAvailable:   15400000 kB\nBuffers:           25000 kB\nCached:           600000 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\nSlab:              90000 kB\nSReclaimable:      40000 kB\n',
  'proc/self/limits': limits('1024', '1048576'),
  'proc/self/mountinfo': '24 30 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw\n',
  'proc/net/sockstat': 'sockets: used 190\nTCP: inuse 7 orphan 0 tw 3 alloc 9 mem 1\n',
  'proc/net/netstat': 'TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 0 0\n',
  'proc/net/snmp':
    'Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens\nTcp: 1 200 120000 -1 122 5000\n',
  'proc/net/softnet_stat': CORES.map(() => '0000a2b4 00000000 00000000 00000000 00000000\n').join(''),
  'proc/net/fib_trie':
    'Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\nLocal:\n  +-- 0.0.0.0/0 2 0 2\n     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 172.31.4.17\n        /32 host LOCAL\n     |-- 172.31.15.255\n        /32 link BROADCAST\n',
  'proc/interrupts': `           ${CORES.map(i => `CPU${i}`.padStart(10)).join(' ')}\n  4:  ${CORES.map(() => '0').join('  ')}  IO-APIC   4-edge      ttyS0\n 26:  ${CORES.map(i => (i === 0 ? '12' : '0')).join('  ')}  PCI-MSIX-0000:00:05.0   0-edge      ena-mgmnt@pci:0000:00:05.0\n${CORES.map(queue => ` ${27 + queue}:  ${CORES.map(i => (i === core(queue) ? '90210' : '0')).join('  ')}  PCI-MSIX-0000:00:05.0   ${queue + 1}-edge      ens5-Tx-Rx-${queue}\n`).join('')}LOC:  ${CORES.map(() => '55').join('  ')}   Local timer interrupts\nERR:          0\n`,
  'sys/class/net/ens5/device': '->../../../devices/pci0000:00/0000:00:05.0',
  'sys/class/net/ens5/operstate': 'up\n',
  'sys/class/net/lo/operstate': 'unknown\n',
  'sys/class/net/lo/queues/rx-0/rps_cpus': '00\n',
  'sys/devices/pci0000:00/0000:00:05.0/msi_irqs/26': 'msix\n',
  ...queues(core),
  'sys/kernel/mm/transparent_hugepage/enabled': 'always [madvise] never\n',
  ...sysctl({
    'fs.nr_open': '1048576',
    'fs.file-max': '9223372036854775807',
    'fs.file-nr': '1312\t0\t9223372036854775807',
    'net.core.netdev_max_backlog': '1000',
    'net.core.somaxconn': '4096',
    'net.ipv4.ip_local_port_range': '32768\t60999',
    'net.ipv4.tcp_max_syn_backlog': '1024',
    'net.ipv4.tcp_mem': '187236\t249648\t374472',
    'net.ipv4.tcp_migrate_req': '0',
    'net.ipv4.tcp_moderate_rcvbuf': '1',
    'net.ipv4.tcp_rmem': '4096\t131072\t6291456',
    'net.ipv4.tcp_wmem': '4096\t16384\t4194304',
    'net.ipv4.tcp_syncookies': '1',
    'net.ipv4.tcp_tw_reuse': '2',
    'vm.max_map_count': '65530',
  }),
})

/** A container on that machine: 2 cores, 1 GB, and only its own network settings. @returns {Tree} */
export function container() {
  const host = Object.entries(ec2()).filter(
    ([path]) =>
      !/ens5|pci0000|proc\/irq|tcp_mem|netdev_max_backlog|nf_conntrack|fs\/(?:nr_open|file)/.test(path),
  )
  return {
    ...Object.fromEntries(host),
    'proc/1/cgroup': '0::/../../kubepods-burstable.slice/cri-containerd-0a1b.scope\n',
    'proc/self/cgroup': '0::/\n',
    'proc/self/mountinfo':
      '2 1 0:5 / /proc rw,nosuid - proc proc rw\n3 2 0:5 /sys /proc/sys ro,nosuid,nodev - proc proc rw\n',
    'sys/fs/cgroup/memory.max': '1073741824\n',
    'sys/fs/cgroup/memory.current': '104857600\n',
    'sys/fs/cgroup/memory.stat':
      'anon 90000000\nfile 10000000\ninactive_file 8000000\nactive_file 0\nslab_reclaimable 0\nslab 100000\n',
    'sys/fs/cgroup/cpu.max': '200000 100000\n',
    'sys/class/net/eth0/operstate': 'up\n',
    'sys/class/net/eth0/queues/rx-0/rps_cpus': '00\n',
    ...sysctl({ 'net.core.somaxconn': '128' }),
  }
}

/** A kernel of 2013, with control groups of version 1 and without many newer files. @returns {Tree} */
export const old = () => ({
  'proc/sys/kernel/osrelease': '3.10.0-1160.el7.x86_64\n',
  'proc/stat': 'cpu  10 0 10 1000\ncpu0 5 0 5 500\ncpu1 5 0 5 500\n',
  'proc/self/cgroup': '4:memory:/\n3:cpuacct,cpu:/web\n1:name=systemd:/\n',
  'proc/1/cgroup': '1:name=systemd:/\n',
  'proc/meminfo':
    'MemTotal:        4044096 kB\nMemFree:         3000000 kB\nBuffers:           10000 kB\nCached:           300000 kB\nSwapTotal:       2097148 kB\nSwapFree:         1048572 kB\n',
  'proc/self/limits': limits('1024', '4096'),
  'proc/net/sockstat': 'sockets: used 120\nTCP: inuse 30 orphan 0 tw 20000 alloc 40 mem 2\n',
  'proc/net/netstat': 'TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 4000 4000\n',
  'proc/net/snmp':
    'Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens\nTcp: 1 200 120000 -1 122 90000\n',
  'proc/net/softnet_stat': '00010000 00000300 00000000\n00010000 00000000 00000000\n',
  'sys/fs/cgroup/cpu/web/cpu.cfs_quota_us': '150000\n',
  'sys/fs/cgroup/cpu/web/cpu.cfs_period_us': '100000\n',
  'sys/kernel/mm/transparent_hugepage/enabled': '[always] madvise never\n',
  ...sysctl({
    'fs.file-max': '395000',
    'fs.file-nr': '1000\t0\t395000',
    'fs.nr_open': '1048576',
    'net.core.somaxconn': '128',
    'net.ipv4.ip_local_port_range': '32768\t61000',
    'net.ipv4.tcp_max_syn_backlog': '256',
    'net.ipv4.tcp_mem': '92160\t122880\t184320',
    'net.ipv4.tcp_rmem': '4096\t87380\t32768',
    'net.ipv4.tcp_syncookies': '0',
    'net.ipv4.tcp_tw_reuse': '0',
    'net.netfilter.nf_conntrack_max': '65536',
    'net.netfilter.nf_conntrack_count': '1536',
    'net.netfilter.nf_conntrack_buckets': '16384',
  }),
})

/** @returns {Tree} the files of EC2 with garbled content */
export const garbled = () =>
  Object.fromEntries(
    Object.entries(ec2()).map(([path, text]) => [path, text.startsWith('->') ? text : 'ÿ: x,-,[ :\n\n 0x']),
  )

/** @param {Tree} tree @param {(target: string) => any} link @returns {any} what t.testdir() takes */
export function folders(tree, link) {
  /** @type {any} */
  const root = { proc: {} }
  for (const [path, text] of Object.entries(tree)) {
    const words = path.split('/')
    const name = words.pop() ?? ''
    let at = root
    for (const word of words) at = at[word] ??= {}
    at[name] = text.startsWith('->') ? link(text.slice(2)) : text
  }
  return root
}
