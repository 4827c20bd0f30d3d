// Runs in the browser: every transport of a page, over a network that cuts connections. Reports to the test.

import { LongPollSocket } from '/client/long-poll-socket.js'

/* global Centrifuge */

const { gateway, channel, total } = Object.fromEntries(new URLSearchParams(location.search))
const TOTAL = Number(total)
const origin = `http://${gateway}`

/** @type {Record<string, {got: number[], unrecovered: number, note?: any}>} */
const results = {}

const tell = (path, body) => fetch(path, { method: 'POST', body: JSON.stringify(body) })

function sdk(label, transports, options = {}) {
  const result = { got: [], unrecovered: 0, note: {} }
  results[label] = result
  const client = new Centrifuge(transports, {
    emulationEndpoint: `${origin}/emulation`,
    minReconnectDelay: 20,
    maxReconnectDelay: 200,
    ...options,
  })
  const subscription = client.newSubscription(channel)
  subscription.on('publication', ({ data }) => result.got.push(data.n))
  subscription.on('subscribed', ({ wasRecovering, recovered }) => {
    if (wasRecovering && !recovered) result.unrecovered++
  })
  client.on('disconnected', ({ code, reason }) => {
    result.note.ended = `${code} ${reason}`
  })
  subscription.subscribe()
  client.connect()
  return subscription.ready(20_000).then(async () => {
    const own = `own-${label}`
    await client.publish(own, { hello: label })
    const { publications } = await client.history(own, { limit: 10 })
    const { clients } = await client.presence(channel)
    await client.rpc('ping', {})
    Object.assign(result.note, {
      history: publications.map(({ data }) => data),
      present: Object.keys(clients).length > 0,
    })
  })
}

/** A plain EventSource: reconnects automatically and sends its position. */
function eventSource() {
  const result = { got: [], unrecovered: 0 }
  results.eventsource = result
  const request = JSON.stringify({ subs: { [channel]: {} } })
  const source = new EventSource(`${origin}/connection/uni_sse?cf_connect=${encodeURIComponent(request)}`)
  return new Promise(resolve => {
    source.onmessage = ({ data }) => {
      const push = JSON.parse(data)
      if (push.connect) {
        const sub = push.connect.subs[channel]
        if (sub.was_recovering && !sub.recovered) result.unrecovered++
        for (const { data } of sub.publications ?? []) result.got.push(data.n)
        resolve()
      } else if (push.pub) result.got.push(push.pub.data.n)
    }
  })
}

async function poll() {
  const result = { got: [], unrecovered: 0 }
  results.poll = result
  const ask = async query => {
    const answer = await fetch(`${origin}/connection/uni_poll?${new URLSearchParams({ channel, ...query })}`)
    return answer.json()
  }
  let { cursor } = await ask({ timeout: 0 })
  const loop = async () => {
    while (result.got.length < TOTAL) {
      try {
        const answer = await ask({ cursor, timeout: 20 })
        if (answer.lost) result.unrecovered++
        for (const { data } of answer.publications) result.got.push(data.n)
        cursor = answer.cursor
      } catch {
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    }
  }
  loop()
}

try {
  await Promise.all([
    sdk('websocket', [{ transport: 'websocket', endpoint: `ws://${gateway}/connection/websocket` }]),
    sdk('http_stream', [{ transport: 'http_stream', endpoint: `${origin}/connection/http_stream` }]),
    sdk('sse', [{ transport: 'sse', endpoint: `${origin}/connection/sse` }]),
    sdk('long-poll', [{ transport: 'websocket', endpoint: `ws://${gateway}/connection/poll` }], {
      websocket: LongPollSocket,
    }),
    eventSource(),
    poll(),
  ])
  await tell('/ready', {})
  while (!Object.values(results).every(({ got }) => got.length >= TOTAL)) {
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  await tell('/done', results)
} catch (error) {
  await tell('/done', { error: `${error?.stack ?? error}`, results })
}
