// First and last subscribers of a channel that subscribe and unsubscribe concurrently, in two workers.

import { startGateway } from './kit/gateway.js'
import { RawClient } from './kit/raw-client.js'

const open = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }
const config = {
  client: { allow_anonymous_connect_without_token: true },
  channel: {
    namespaces: [
      { name: 'plain', ...open },
      { name: 'rec', ...open, history_size: 1000, history_ttl: '60s', force_recovery: true },
    ],
  },
}

/**
 * @param {any} t
 * @param {'uws' | 'node'} driver
 * @param {number} rounds of each of six visitors, in each of two channels
 */
export async function churn(t, driver, rounds) {
  const gateway = await startGateway(t, { ...config, http_server: { driver } })

  for (const channel of ['plain:1', 'rec:1']) {
    t.test(`${channel}: subscribers receive all later publications, earlier clients none`, async t => {
      let published = 0
      const faults = []
      const visitor = async v => {
        const client = await RawClient.connected(gateway.ws)
        let id = 100
        for (let round = 0; round < rounds; round++) {
          await client.subscribe(channel)
          const n = ++published
          await gateway.api('publish', { channel, data: n })
          while ((await client.push('pub')).pub.data !== n);
          if ((v + round) % 2) {
            // In one frame: unsubscribe, subscribe, unsubscribe.
            const ids = [++id, ++id, ++id]
            client.send(
              { id: ids[0], unsubscribe: { channel } },
              { id: ids[1], subscribe: { channel } },
              { id: ids[2], unsubscribe: { channel } },
            )
            for (const wanted of ids) {
              const reply = await client.next(message => message.id === wanted)
              if (reply.error) faults.push(reply)
            }
          } else {
            await client.call('unsubscribe', { channel })
          }
          client.messages.splice(0)
          await client.call('rpc', { method: 'nothing' })
          if (client.messages.some(({ push }) => push)) faults.push(client.messages)
        }
        await client.close()
      }
      await Promise.all(Array.from({ length: 6 }, (_, v) => visitor(v)))
      t.same(faults, [])
      t.same((await gateway.api('channels', { pattern: channel })).result.channels, {}, 'none is left')
    })
  }
}
