import { ChannelStateEvent } from '../hooks/events.js'
import { textPayload } from '../protocol/payload.js'

/** @import { BrokerEvents, StateEvent } from '../../channels/broker/contract.js' */
/** @import { Handler } from '../hooks/contract.js' */
/** @import { Payload } from '../protocol/payload.js' */
/** @import { WorkerContext } from './context.js' */

/** @typedef {(channel: string, payload: Payload, done: (error: Error | null) => void) => void} Publish */

/**
 * Reports the states of channels to the backend, and publishes the numbers of their clients (docs/access.md).
 * @param {WorkerContext} context @param {Publish} publish
 * @returns {Required<Pick<BrokerEvents, 'states' | 'occupancy' | 'tracking' | 'tracks'>>}
 */
export function createChannelStates(context, publish) {
  return {
    states(events, dropped, done) {
      const { traffic } = context
      traffic.counts.channel_events_dropped += dropped
      report(context, events).then(accepted => {
        if (accepted) for (const { type } of events) traffic.add('channel_events', type)
        else traffic.counts.channel_event_failures++
        done(accepted)
      })
    },
    occupancy(channel, clients, done) {
      count(context, channel, clients, publish).then(
        () => done(true),
        error => {
          context.log.warn({ channel, reason: error.message }, 'occupancy not published')
          done(false)
        },
      )
    },
    tracking: channel => context.rules.resolve(channel)?.tracking,
    tracks: () => context.rules.tracks,
  }
}

/** @param {WorkerContext} context @param {StateEvent[]} events @returns {Promise<boolean>} whether all handlers accept them */
async function report(context, events) {
  /** @type {Map<Handler<ChannelStateEvent, boolean>, StateEvent[]>} */
  const byHandler = new Map()
  for (const event of events) {
    // A reload may have removed the namespace, or its handlers.
    const namespace = context.rules.resolve(event.channel)
    for (const handler of namespace?.tracking?.events ? namespace.handlers.channelState : []) {
      const own = byHandler.get(handler)
      if (own) own.push(event)
      else byHandler.set(handler, [event])
    }
  }
  const accepted = await Promise.all(Array.from(byHandler, ([handler, own]) => call(context, handler, own)))
  return accepted.every(Boolean)
}

/** @param {WorkerContext} context @param {Handler<ChannelStateEvent, boolean>} handler @param {StateEvent[]} events */
function call(context, handler, events) {
  return new Promise(resolve => {
    const event = new ChannelStateEvent(events, context)
    context.hookCalls.ask(null, handler, event, (error, accepted) =>
      resolve(error === null && accepted !== false),
    )
  })
}

/** @param {WorkerContext} context @param {string} channel @param {number} clients @param {Publish} publish */
async function count(context, channel, clients, publish) {
  const options = context.rules.resolve(channel)?.options
  if (options === undefined || options.occupancy_channel_prefix === '') return
  // Both numbers of one moment.
  const counts = options.occupancy_users ? await context.broker.presence.stats(channel) : { clients }
  await new Promise((resolve, reject) =>
    publish(options.occupancy_channel_prefix + channel, textPayload(JSON.stringify(counts)), error =>
      error === null ? resolve(null) : reject(error),
    ),
  )
}
