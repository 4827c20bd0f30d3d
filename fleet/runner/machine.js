// What a run was made on.

import { readFile } from 'node:fs/promises'
import { availableParallelism, cpus, release, totalmem, type } from 'node:os'

/** @typedef {import('./result.js').MachineFacts} MachineFacts */

/** Settings of the kernel that decide how many connections there can be, and how fast they come. */
const KERNEL = Object.freeze([
  'fs.nr_open',
  'fs.file-max',
  'net.core.somaxconn',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_max_syn_backlog',
  'net.ipv4.tcp_mem',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_wmem',
  'net.ipv4.tcp_moderate_rcvbuf',
  'net.ipv4.tcp_tw_reuse',
  'net.netfilter.nf_conntrack_max',
])
/** Where nothing says how many files a process may open. */
const FILES = 1024

/** @param {string} path @returns {Promise<string>} '' where there is none */
const read = path => readFile(path, 'utf8').catch(() => '')

/** @returns {Promise<number>} files that one process may open: the hard limit, which Node.js raises its own to */
export async function filesLimit() {
  const [, , hard] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(await read('/proc/self/limits')) ?? []
  return hard === 'unlimited' ? 1_048_576 : Number(hard) || FILES
}

/** @returns {Promise<MachineFacts>} */
export async function machineFacts() {
  /** @type {Record<string, string>} */
  const kernel = {}
  for (const name of KERNEL) {
    const value = (await read(`/proc/sys/${name.replaceAll('.', '/')}`)).trim().replace(/\s+/g, ' ')
    if (value !== '') kernel[name] = value
  }
  return {
    system: `${type()} ${release()} ${process.arch}`,
    cpu: cpus()[0]?.model.trim() ?? '',
    cores: availableParallelism(),
    memory: totalmem(),
    files: await filesLimit(),
    kernel,
  }
}
