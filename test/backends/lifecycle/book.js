// Contents of the lifecycle log, compared with the records of clients.

import { readFileSync } from 'node:fs'

/** @param {string} path of the file of the log @returns {any[]} whole records */
export function readLog(path) {
  let text = ''
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    // Nothing is written yet.
  }
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))
}

/** @param {any[]} records @param {string} type @returns {Map<string, any[]>} client -> its records */
export function byClient(records, type) {
  const clients = new Map()
  for (const record of records) {
    if (record.type !== type) continue
    const own = clients.get(record.client)
    if (own) own.push(record)
    else clients.set(record.client, [record])
  }
  return clients
}

/**
 * What is wrong in the log.
 * @param {any[]} records
 * @param {Iterable<string>} known ids of clients that have connected
 * @param {{once?: boolean}} [options] once: no event is in the log twice
 * @returns {string[]} [] if every client has a connect and a disconnect
 */
export function faultsOf(records, known, { once = true } = {}) {
  const connects = byClient(records, 'connected')
  const disconnects = byClient(records, 'disconnected')
  const faults = []
  for (const client of known) {
    if (!connects.has(client)) faults.push(`${client} has no connect`)
    if (!disconnects.has(client)) faults.push(`${client} has no disconnect`)
  }
  for (const [client] of connects)
    if (!disconnects.has(client)) faults.push(`${client} is never disconnected`)
  const seen = new Set()
  for (const { id, type } of records) {
    if (once && seen.has(id)) faults.push(`${id} (${type}) is there twice`)
    seen.add(id)
  }
  return faults
}
