// The chat whose rules are hooks, by the SDK: names, rooms, messages, renaming, and the notice of a client that is
// gone.

import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { fetch } from '../kit/fetch.js'
import { until } from '../kit/wait.js'
import { next, startExample } from './example.js'

const example = await startExample(t, 'chat', {})

/** @param {any} t @param {string} name */
function open(t, name) {
  class BrowserSocket extends WebSocket {
    /** @param {string} url @param {string[]} protocols */
    constructor(url, protocols) {
      super(url, protocols, { origin: example.app })
    }
  }
  const client = new Centrifuge(`${example.gateway.replace('http', 'ws')}/connection/websocket`, {
    websocket: BrowserSocket,
    data: { name },
  })
  t.teardown(() => client.disconnect())
  client.connect()
  return client
}

/** @param {Centrifuge} client @param {string} room */
async function enter(client, room) {
  const subscription = client.newSubscription(room)
  /** @type {any[]} */
  const heard = []
  subscription.on('publication', ({ data }) => heard.push(data))
  const subscribed = next(subscription, 'subscribed')
  subscription.subscribe()
  const { data } = await subscribed
  /** @param {(data: any) => boolean} matches @returns {Promise<any>} */
  const hears = matches => until(() => heard.find(matches))
  return { subscription, welcome: data.welcome, hears }
}

t.test('two people in a room', async t => {
  const [ann, ben] = [open(t, 'Ann'), open(t, 'Ben')]
  const [annRoom, benRoom] = [await enter(ann, 'room:lobby'), await enter(ben, 'room:lobby')]
  t.equal(annRoom.welcome, 'You are in lobby.')
  t.ok(await annRoom.hears(({ notice }) => notice === 'Ben is here'))
  await ben.publish('room:lobby', { text: 'hello', name: 'not mine' })
  t.same(await annRoom.hears(({ text }) => text === 'hello'), {
    room: 'room:lobby',
    name: 'Ben',
    text: 'hello',
  })
  await t.rejects(ben.publish('room:lobby', { text: '' }), { code: 4003 })
  await t.rejects(ben.publish('room:other', { text: 'hello' }), { code: 4002 })
  await ben.rpc('rename', { name: 'Benny', room: 'room:lobby' })
  t.ok(await annRoom.hears(({ notice }) => notice === 'Ben is now Benny'))
  await ben.publish('room:lobby', { text: 'again' })
  t.match(await annRoom.hears(({ text }) => text === 'again'), { name: 'Benny' })
  ben.disconnect()
  t.ok(await annRoom.hears(({ notice }) => notice === 'Benny has left'))
  t.ok(benRoom)
})

t.test('what the rules refuse', async t => {
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
