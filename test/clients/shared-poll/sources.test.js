// Rounds that a gRPC backend, or a hooks module in the gateway, answers.

import t from 'tap'
import { GrpcBackend } from '../../backends/hooks/grpc-backend.js'
import { testdir } from '../../kit/folders.js'
import { namespace, newChannel, Poller, startPolls } from './rig.js'

const NAMESPACES = [namespace('poll'), namespace('pollvl', { mode: 'versionless' })]

/** @param {any[]} list */
const keysOf = list => list.map(({ key }) => key)

t.test('a gRPC backend', async t => {
  const backend = await GrpcBackend.start(t)
  /** @type {Record<string, any>} */
  const items = { a: { data: { text: 'ü🎈' }, version: 9 }, b: { data: null, version: 1 } }
  /** @type {(request: any) => any} */
  let answer = ({ fields }) => ({
    result: { epoch: '', items: fields.items.map(({ key }) => ({ key, ...items[key] })) },
  })
  backend.answer = request => answer(request)
  const gateway = await startPolls(t, { endpoint: backend.url }, NAMESPACES)
  const poller = await Poller.open(t, gateway, newChannel())
  await poller.track({ a: 0, b: 0 })
  const pubs = [await poller.next(), await poller.next()]
  t.match(
    pubs.find(({ key }) => key === 'a'),
    { data: { text: 'ü🎈' }, version: 9 },
  )
  t.strictSame(pubs.find(({ key }) => key === 'b').data, null)
  const { fields } = await backend.request(
    ({ fields }) => fields.channel === poller.channel && fields.items[0]?.version === 9,
  )
  t.same(keysOf(fields.items), ['a', 'b'])
  const good = answer
  for (const broken of [
    { code: 13, details: 'out of order' },
    { error: { code: 1, message: 'no' } },
    {},
    Buffer.from([0xff, 0xff]),
  ]) {
    let calls = 0
    answer = request => (calls++ === 0 ? broken : good(request))
    items.a = { data: { calls }, version: items.a.version + 1 }
    t.match(await poller.next(), { key: 'a', version: items.a.version }, 'the round after a failed one')
  }
  items.a = { removed: true }
  t.match(await poller.next(), { key: 'a', removed: true })
})

t.test('a hooks module', async t => {
  const folder = testdir(t, {
    'package.json': '{"type":"module"}',
    'hooks.js': `
      let round = 0
      export function sharedPollRefresh({ channel, items }) {
        round++
        if (channel.endsWith(':throws') && round % 2) throw new Error('not this time')
        if (channel.endsWith(':wrong') && round % 2) return { items: 'none' }
        if (channel.endsWith(':nothing') && round % 2) return undefined
        const answered = items.map(({ key, version }) => ({
          key,
          data: { key, version: Number(version) },
          version: version < 3n ? version + 1n : 3,
        }))
        return channel.endsWith(':later') ? new Promise(resolve => setTimeout(resolve, 5, { items: answered })) : { items: answered }
      }`,
  })
  const gateway = await startPolls(t, { endpoint: 'http://127.0.0.1:1/unused' }, NAMESPACES, {
    hooks: { module: `${folder}/hooks.js` },
  })
  for (const channel of ['poll:plain', 'poll:later', 'poll:throws', 'poll:wrong', 'poll:nothing']) {
    const poller = await Poller.open(t, gateway, channel)
    await poller.track({ a: 0 })
    const pubs = await poller.until('a', 3)
    t.same(
      pubs.map(({ version, data }) => [version, data.version]),
      [
        [1, 0],
        [2, 1],
        [3, 2],
      ],
      channel,
    )
  }
  const poller = await Poller.open(t, gateway, newChannel('pollvl'))
  await poller.track({ a: 0 })
  t.match(await poller.next(), { key: 'a', data: { key: 'a' } })
})
