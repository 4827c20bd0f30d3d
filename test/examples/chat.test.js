// The chat whose rules are hooks, by the SDK: names, rooms, messages, renaming, and the notice of a client that is
// gone.

import t from 'tap'
import { fetch } from '../kit/fetch.js'
import { until } from '../kit/wait.js'
import { next, sdk, startExample } from './example.js'

const example = await startExample(t, 'chat', {})

function open(t, name) {
  const client = sdk(t, example.gateway, example.app, { data: { name } })
  client.connect()
  return client
}

async function enter(client, room) {
  const subscription = client.newSubscription(room)
  const received = []
  subscription.on('publication', ({ data }) => received.push(data))
  const subscribed = next(subscription, 'subscribed')
  subscription.subscribe()
  const { data } = await subscribed
  /** @param {(data: any) => boolean} matches @returns {Promise<any>} */
  const receives = matches => until(() => received.find(matches))
  return { subscription, welcome: data.welcome, receives }
}

t.test('two people exchange messages in a room', async t => {
  const [ann, ben] = [open(t, 'Ann'), open(t, 'Ben')]
  const [annRoom, benRoom] = [await enter(ann, 'room:lobby'), await enter(ben, 'room:lobby')]
  t.equal(annRoom.welcome, 'You are in lobby.')
  t.ok(await annRoom.receives(({ notice }) => notice === 'Ben is here'))
  await ben.publish('room:lobby', { text: 'hello', name: 'not mine' })
  t.same(await annRoom.receives(({ text }) => text === 'hello'), {
    room: 'room:lobby',
    name: 'Ben',
    text: 'hello',
  })
  await t.rejects(ben.publish('room:lobby', { text: '' }), { code: 4003 })
  await t.rejects(ben.publish('room:other', { text: 'hello' }), { code: 4002 })
  await ben.rpc('rename', { name: 'Benny', room: 'room:lobby' })
  t.ok(await annRoom.receives(({ notice }) => notice === 'Ben is now Benny'))
  await ben.publish('room:lobby', { text: 'again' })
  t.match(await annRoom.receives(({ text }) => text === 'again'), { name: 'Benny' })
  ben.disconnect()
  t.ok(await annRoom.receives(({ notice }) => notice === 'Benny has left'))
  t.ok(benRoom)
})

t.test('the rules refuse invalid names, rooms and texts', async t => {
  t.equal((await fetch(`${example.app}//`)).status, 404, 'no path of a request ends the program')
  const nameless = open(t, ' ')
  t.match(await next(nameless, 'disconnected'), {
    code: 4000,
    reason: 'a name has 1 to 20 letters, digits, spaces, dashes or underscores',
  })
  const cay = open(t, 'Cay')
  const subscription = cay.newSubscription('elsewhere')
  const refused = next(subscription, 'unsubscribed')
  subscription.subscribe()
  t.match(await refused, { code: 4001 })
})
