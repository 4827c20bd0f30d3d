// A network of hosts: network namespaces with a link each to a bridge. The test itself is one of them, the host
// `here`. Addresses of the link layer are fixed, as behind a router: a host that cannot be reached is not reported as
// such, its packets just vanish.

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

const BRIDGE = 'br0'
/** States of a bridge port (bridge(8)). */
const DISABLED = 0
const FORWARDING = 3
const HERE = 254

/** @param {string} program @param {string[]} args */
const run = (program, ...args) => execFileSync(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })

/** One host: its programs are started with `prefix` before their command. */
export class Host {
  /**
   * @param {string} name
   * @param {number} number last part of its address
   * @param {string[]} prefix
   */
  constructor(name, number, prefix) {
    this.name = name
    this.number = number
    this.prefix = prefix
    this.address = `10.0.0.${number}`
    this.mac = `02:00:00:00:00:${number.toString(16).padStart(2, '0')}`
    this.device = name === 'here' ? BRIDGE : 'eth0'
    /** Name of its end of the link at the bridge. */
    this.port = `v${name}`
  }

  /** @param {string[]} command on this host */
  run(...command) {
    const [program, ...args] = [...this.prefix, ...command]
    return run(program, ...args)
  }
}

/** Hosts and their links. */
export class Network {
  /** @type {Map<string, Host>} */
  #hosts = new Map()
  here = new Host('here', HERE, [])

  /** @param {string[]} names of hosts, at most ten letters and digits each */
  constructor(...names) {
    run('ip', 'link', 'set', 'lo', 'up')
    run('ip', 'link', 'add', BRIDGE, 'address', this.here.mac, 'type', 'bridge')
    run('ip', 'addr', 'add', `${this.here.address}/24`, 'dev', BRIDGE)
    run('ip', 'link', 'set', BRIDGE, 'up')
    for (const [i, name] of names.entries()) {
      const host = new Host(name, i + 1, ['nsenter', `--net=/run/netns/${name}`, '--'])
      this.#hosts.set(name, host)
      const { address, device, port, mac } = host
      run('ip', 'netns', 'add', name)
      run('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', device, 'address', mac, 'netns', name)
      run('ip', 'link', 'set', port, 'master', BRIDGE, 'up')
      host.run('ip', 'link', 'set', 'lo', 'up')
      host.run('ip', 'addr', 'add', `${address}/24`, 'dev', device)
      host.run('ip', 'link', 'set', device, 'up')
    }
    for (const host of this.all)
      for (const { address, mac } of this.all.filter(other => other !== host))
        host.run('ip', 'neigh', 'replace', address, 'lladdr', mac, 'dev', host.device, 'nud', 'permanent')
  }

  /** Every host, the test's own one included. */
  get all() {
    return [...this.#hosts.values(), this.here]
  }

  /** @param {string} name @returns {Host} */
  host(name) {
    const host = this.#hosts.get(name)
    if (!host) throw new Error(`no host ${name}`)
    return host
  }

  /** From now on all packets from and to a host vanish. @param {Host} host */
  cut(host) {
    run('bridge', 'link', 'set', 'dev', host.port, 'state', `${DISABLED}`)
  }

  /** Ends `cut`. @param {Host} host */
  join(host) {
    run('bridge', 'link', 'set', 'dev', host.port, 'state', `${FORWARDING}`)
  }

  /** The link of a host goes down: it has no carrier. @param {Host} host */
  unplug(host) {
    run('ip', 'link', 'set', host.port, 'down')
  }

  /** Ends `unplug`. @param {Host} host */
  plug(host) {
    run('ip', 'link', 'set', host.port, 'up')
  }

  /** From now on packets in this direction vanish. @param {Host} from @param {Host} to */
  block(from, to) {
    to.run('iptables', '-w', '-I', 'INPUT', '-s', from.address, '-j', 'DROP')
  }

  /** From now on packets between two hosts vanish. @param {Host} one @param {Host} other */
  part(one, other) {
    this.block(one, other)
    this.block(other, one)
  }

  /** A part of the packets that a host is sent vanishes. @param {Host} to @param {number} share 0 to 1 */
  lose(to, share) {
    const statistic = ['-m', 'statistic', '--mode', 'random', '--probability', `${share}`]
    to.run('iptables', '-w', '-A', 'INPUT', '-i', to.device, ...statistic, '-j', 'DROP')
  }

  /** Ends all of `block`, `part` and `lose`. */
  clear() {
    for (const host of this.all) host.run('iptables', '-w', '-F', 'INPUT')
  }

  /** @param {number} bytes largest packet of all links */
  mtu(bytes) {
    for (const { port } of this.#hosts.values()) run('ip', 'link', 'set', port, 'mtu', `${bytes}`)
    for (const host of this.all) host.run('ip', 'link', 'set', host.device, 'mtu', `${bytes}`)
  }
}

/** @param {number} pid @returns {number[]} it and all below it, which run */
function family(pid) {
  /** @type {Map<number, number[]>} */
  const children = new Map()
  for (const name of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
      children.set(parent, [...(children.get(parent) ?? []), Number(name)])
    } catch {
      // It has ended.
    }
  }
  const below = (/** @type {number} */ of) => [of, ...(children.get(of) ?? []).flatMap(below)]
  return below(pid)
}

/**
 * Stops all processes of a gateway or another program, as on a suspended machine.
 * @param {number} pid
 * @returns {() => void} continues them, once
 */
export function freeze(pid) {
  // The parent first: it must not notice that its children are stopped.
  const stopped = family(pid)
  for (const one of stopped) process.kill(one, 'SIGSTOP')
  return () => {
    for (const one of stopped.splice(0).toReversed()) process.kill(one, 'SIGCONT')
  }
}
