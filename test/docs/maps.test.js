// The programs of docs/maps.md, on a gateway with its configuration.

import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { parse } from 'yaml'
import { createGateway } from '../../src/index.js'
import { makeToken } from '../clients/auth/jwt.js'
import { freePort } from '../kit/ports.js'
import { until } from '../kit/wait.js'
import { blockWith, withSecrets } from './blocks.js'

const PAGE = 'docs/maps.md'
const config = parse(withSecrets(blockWith(PAGE, 'yaml', 'cursors')))
const gateway = await createGateway({
  config: {
    ...config,
    workers: 1,
    log: { level: 'none' },
    stats: { socket: 'none' },
    http_server: { address: '127.0.0.1', port: await freePort() },
    client: { ...config.client, allowed_origins: ['*'] },
    channel: {
      namespaces: [
        ...config.channel.namespaces,
        { name: 'chat', subscription_type: 'map', map: { mode: 'persistent' } },
      ],
    },
  },
})
t.teardown(() => gateway.stop())

/** @param {string} part of the block @param {object} names of its variables */
function run(part, names) {
  const AsyncFunction = (async () => {}).constructor
  // @ts-expect-error The type of an async function's constructor is that of Function.
  return new AsyncFunction(...Object.keys(names), blockWith(PAGE, 'js', part))(...Object.values(names))
}

t.test('cursors appear and disappear with their clients', async t => {
  const url = `${gateway.url.replace('http', 'ws')}/connection/websocket`
  /** @type {Map<string, any>[]} */
  const views = []
  const open = async user => {
    const token = makeToken({ sub: user }, config.client.token.hmac_secret_key)
    const client = new Centrifuge(url, { websocket: WebSocket, token })
    t.teardown(() => client.disconnect())
    const view = new Map()
    views.push(view)
    client.connect()
    await run('cursors.publish', {
      client,
      draw(entries) {
        for (const { key, data } of entries) view.set(key, data)
      },
      erase: key => view.delete(key),
      move: (key, data) => view.set(key, data),
    })
    return client
  }
  await open('ann')
  const other = await open('ben')
  await until(
    () => views.every(view => view.size === 2),
    () => `two cursors in both views: ${views.map(view => view.size)}`,
  )
  t.same(
    [...views[0].values()],
    [
      { x: 10, y: 20 },
      { x: 10, y: 20 },
    ],
  )
  other.disconnect()
  await until(
    () => views[0].size === 1,
    () => 'the other cursor gone',
  )
})

t.test('compare-and-set', async t => {
  await gateway.maps.publish('board:1', 'card-7', { text: 'hello', column: 2 })
  await Promise.all([run('expectedOffset', { gateway }), run('expectedOffset', { gateway })])
  const { entries } = await gateway.maps.readState('board:1', { key: 'card-7' })
  t.same(entries[0].data, { text: 'hello', column: 3 })
})

t.test('append', async t => {
  const answer = (async function* () {
    yield* ['To', 'ken', 's: ü🎈']
  })()
  await run('append: true', { gateway, answer })
  const { entries } = await gateway.maps.readState('chat:7', { key: 'answer' })
  t.equal(entries[0].data, 'Tokens: ü🎈')
})
