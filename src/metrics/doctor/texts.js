// Parsers of /proc and /sys files that only the doctor reads. They return null for an unknown format.

/** @param {string} text @returns {number[] | null} null if there are none, or other text */
export function parseNumbers(text) {
  const words = text.trim().split(/\s+/)
  return words.every(word => /^-?\d+$/.test(word)) ? words.map(Number) : null
}

/**
 * /proc/PID/limits.
 * @param {string} text @returns {{soft: number, hard: number} | null} open files; Infinity: no limit
 */
export function parseLimits(text) {
  const found = /^Max open files\s+(\d+|unlimited)\s+(\d+|unlimited)/m.exec(text)
  if (found === null) return null
  const [soft, hard] = found
    .slice(1)
    .map(word => (word === 'unlimited' ? Number.POSITIVE_INFINITY : Number(word)))
  return { soft, hard }
}

/** A kernel list: 0-3,8. @param {string} text @returns {number[] | null} */
export function parseList(text) {
  const numbers = []
  for (const part of text.trim().split(',')) {
    const found = /^(\d+)(?:-(\d+))?$/.exec(part)
    if (found === null) return null
    const [from, to = from] = found.slice(1).filter(word => word !== undefined)
    // More than any machine has.
    if (Number(to) > 65_535) return null
    for (let i = Number(from); i <= Number(to); i++) numbers.push(i)
  }
  return numbers
}

/** Bits set in a kernel mask, 32 bits a group: 00000000,0000000f. @param {string} text @returns {number | null} */
export function parseMask(text) {
  const digits = text.trim().replaceAll(',', '')
  if (!/^[0-9a-f]+$/i.test(digits)) return null
  return [...BigInt(`0x${digits}`).toString(2)].filter(bit => bit === '1').length
}

/**
 * @typedef {object} Interrupt
 * @property {number} number
 * @property {string} name text after the counts: chip, pin and device
 * @property {number[]} counts since boot, by core
 */

/** /proc/interrupts, devices only. @param {string} text @returns {Interrupt[]} */
export function parseInterrupts(text) {
  const [head = '', ...lines] = text.split('\n')
  const cores = head.match(/CPU\d+/g)?.length ?? 0
  const found = []
  for (const line of lines) {
    const [label, ...words] = line.trim().split(/\s+/)
    const counts = words.slice(0, cores).map(Number)
    if (!/^\d+:$/.test(label ?? '') || counts.length < cores || counts.some(Number.isNaN)) continue
    found.push({ number: Number.parseInt(label, 10), name: words.slice(cores).join(' '), counts })
  }
  return found
}

/**
 * /proc/net/softnet_stat: one line per core, hexadecimal.
 * @param {string} text
 * @returns {{packets: number, dropped: number} | null} since boot; dropped: the backlog was full
 */
export function parsePackets(text) {
  const sum = { packets: 0, dropped: 0 }
  for (const row of text.trim().split('\n')) {
    const [packets, dropped] = row.split(' ').map(word => Number.parseInt(word, 16))
    sum.packets += packets
    sum.dropped += dropped
  }
  return Number.isFinite(sum.packets + sum.dropped) ? sum : null
}

/** /proc/net/sockstat. @param {string} text @returns {number | null} connections closed within the last minute */
export function parseTimeWait(text) {
  const found = /^TCP:.* tw (\d+)/m.exec(text)
  return found === null ? null : Number(found[1])
}

/** /proc/net/snmp. @param {string} text @returns {number | null} connections accepted since boot */
export function parseAccepted(text) {
  const [names, values] = text.split('\n').filter(line => line.startsWith('Tcp:'))
  const at = names?.split(' ').indexOf('PassiveOpens') ?? -1
  const count = Number(values?.split(' ')[at])
  return at > 0 && Number.isFinite(count) ? count : null
}

/**
 * /proc/net/fib_trie.
 * @param {string} text @returns {number | null} local IPv4 addresses without loopback; null if unknown
 */
export function parseAddresses(text) {
  /** @type {Set<string>} */
  const own = new Set()
  let at = ''
  for (const line of text.split('\n')) {
    at = /-- (\d+\.\d+\.\d+\.\d+)/.exec(line)?.[1] ?? at
    if (/\/32 host LOCAL/.test(line) && !at.startsWith('127.')) own.add(at)
  }
  return text.includes('Local:') || own.size > 0 ? own.size : null
}

/** The chosen one of `always [madvise] never`. @param {string} text @returns {string | null} */
export const parseChoice = text => /\[(\w+)\]/.exec(text)?.[1] ?? null

/** /proc/meminfo. @param {string} text @returns {{total: number, used: number} | null} bytes of swap */
export function parseSwap(text) {
  const total = /^SwapTotal:\s+(\d+)/m.exec(text)
  const free = /^SwapFree:\s+(\d+)/m.exec(text)
  if (total === null || free === null) return null
  return { total: Number(total[1]) * 1024, used: (Number(total[1]) - Number(free[1])) * 1024 }
}

/**
 * /proc/self/mountinfo: whether kernel settings cannot be written from here.
 * @param {string} text @returns {boolean}
 */
export const readOnlySettings = text =>
  text.split('\n').some(line => {
    const [, , , , point, options] = line.split(' ')
    return (point === '/proc/sys' || point === '/proc') && options?.split(',').includes('ro')
  })
