import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { readText } from '../proc-reader.js'
import { parseInterrupts, parseList, parseMask } from './texts.js'

/**
 * A network card.
 * @typedef {object} Interface
 * @property {string} name
 * @property {number} receive queues
 * @property {number} send queues
 * @property {number} steered receive queues with software steering (RPS)
 * @property {number} chosen send queues with cores of their own (XPS)
 * @property {{number: number, core: number | null}[]} interrupts of its queues, with the core that serves each;
 *   null: unknown
 */

/** Interrupts of a network card that do not belong to queues. */
const NO_QUEUE = /config|mgmnt|async|control|cmd|fault|pages|event|misc|-rec\b/i

/** @param {string} folder @returns {string[]} empty if unreadable */
function list(folder) {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}

/**
 * The folder of a card's device, and its parent, which has the interrupts of a virtio card.
 * @param {string} device @returns {string[]}
 */
function devices(device) {
  try {
    const real = realpathSync(device)
    return [real, join(real, '..')]
  } catch {
    return []
  }
}

/**
 * Interfaces that are up and have a device: neither loopback nor virtual.
 * @param {string} root @returns {Interface[]}
 */
export function readInterfaces(root) {
  const folder = join(root, 'sys/class/net')
  const interrupts = parseInterrupts(readText(join(root, 'proc/interrupts')))
  const text = (/** @type {string[]} */ ...path) => readText(join(root, ...path))
  /** @type {Interface[]} */
  const found = []
  for (const name of list(folder)) {
    const at = join(folder, name)
    if (!existsSync(join(at, 'device')) || text('sys/class/net', name, 'operstate').trim() === 'down')
      continue
    const folders = devices(join(at, 'device'))
    const numbers = new Set(folders.flatMap(device => list(join(device, 'msi_irqs'))).map(Number))
    // Old kernels and some cards: match the names that drivers use.
    const names = [name, basename(folders[0] ?? name)]
    const own = interrupts.filter(interrupt => {
      const called = names.some(word =>
        new RegExp(`(?:^|[\\s@-])${escapeRegExp(word)}(?:$|[\\s@-])`).test(interrupt.name),
      )
      return (numbers.has(interrupt.number) || called) && !NO_QUEUE.test(interrupt.name)
    })
    const queues = list(join(at, 'queues'))
    const receive = queues.filter(queue => queue.startsWith('rx-'))
    const send = queues.filter(queue => queue.startsWith('tx-'))
    const masked = (/** @type {string} */ queue, /** @type {string} */ file) =>
      (parseMask(text('sys/class/net', name, 'queues', queue, file)) ?? 0) > 0
    found.push({
      name,
      receive: receive.length,
      send: send.length,
      steered: receive.filter(queue => masked(queue, 'rps_cpus')).length,
      chosen: send.filter(queue => masked(queue, 'xps_cpus')).length,
      interrupts: own.map(({ number, counts }) => ({ number, core: coreOf(number, counts, text) })),
    })
  }
  return found
}

/** @param {string} word */
const escapeRegExp = word => word.replace(/[^\w-]/g, '\\$&')

/**
 * @param {number} number @param {number[]} counts @param {(...path: string[]) => string} text
 * @returns {number | null}
 */
function coreOf(number, counts, text) {
  for (const file of ['effective_affinity_list', 'smp_affinity_list']) {
    const cores = parseList(text('proc/irq', String(number), file))
    if (cores?.length === 1) return cores[0]
  }
  // Allowed on several cores: the one with the most interrupts.
  const most = Math.max(0, ...counts)
  return most > 0 ? counts.indexOf(most) : null
}
