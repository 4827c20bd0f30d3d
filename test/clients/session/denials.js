// Shared by the tests of blocked users and revoked tokens.

import { opened, token } from './support.js'

/** @param {any} t @param {{ws: string}} gateway @param {object} claims @returns {Promise<number | 'accepted'>} code */
export async function refused(t, gateway, claims) {
  const client = await opened(t, gateway, { id: 1, connect: { token: token(claims) } })
  const reply = await Promise.race([
    client.closed,
    client.next(({ id }) => id === 1).catch(() => client.closed),
  ])
  return reply.error?.code ?? reply.code ?? 'accepted'
}

/** Connects often enough to reach all workers. @param {any} t @param {{ws: string}} gateway @param {object} claims */
export async function refusedByAll(t, gateway, claims) {
  const codes = await Promise.all(Array.from({ length: 12 }, () => refused(t, gateway, claims)))
  const [code] = codes
  return codes.every(one => one === code) ? code : codes
}
