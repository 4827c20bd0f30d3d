// The contract of a codec: frame bytes <-> commands, replies and pushes of the client protocol. Imports only errors.
// Payloads pass unchanged. Malformed input throws an error of the error table, never a parser exception.

/** @import { MapResult, Publication } from '../../channels/broker/contract.js' */

/**
 * @typedef {object} Command
 * @property {number} id 0 = none
 * @property {string} method 'connect', 'subscribe' ...; '' for an empty command (a pong)
 * @property {any} request type-checked; absent fields are undefined. `data` is raw JSON text, or bytes (Buffer)
 * @property {boolean} ping also has a `ping` field
 */

/**
 * @typedef {object} SubscribeResult zero values are not written
 * @property {boolean} [expires]
 * @property {number} [ttl] seconds
 * @property {boolean} [recoverable]
 * @property {string} [epoch]
 * @property {Publication[]} [publications]
 * @property {boolean} [recovered]
 * @property {number} [offset]
 * @property {boolean} [positioned]
 * @property {string | Buffer} [data] raw
 * @property {boolean} [was_recovering]
 * @property {boolean} [delta] delta-negotiated: JSON writes all data as strings. Not written with `phase`
 * @property {(Buffer | null)[]} [deltas] with `delta`: one per publication; null: full data
 * @property {number} [type] see SubscriptionType
 * @property {number} [phase] of a map, see Phase
 * @property {string} [cursor] of the next page
 * @property {Publication[] | Buffer} [state] entries of a map, with their times; text is a JSON list, only for JSON
 * @property {number} [id] of the channel, in pushes of a compact subscription
 */

/**
 * @typedef {object} ConnectResult
 * @property {string} client
 * @property {string} version
 * @property {boolean} [expires]
 * @property {number} [ttl] seconds
 * @property {string | Buffer} [data] raw
 * @property {Map<string, SubscribeResult> | null} [subs]
 * @property {number} [ping] seconds
 * @property {boolean} [pong]
 * @property {string} [session] for emulation, '' on WebSocket
 * @property {string} [node] of the emulation endpoint, '' = none
 * @property {number} [time] unix ms
 */

/** @typedef {string | Uint8Array} Encoded message without framing */

/** @typedef {string | number} ChannelRef the channel's name, or its id in pushes to compact subscriptions */

/**
 * @typedef {object} Codec
 * @property {string} name
 * @property {boolean} binary frames are binary, and payloads may be any bytes
 * @property {boolean} unidirectional clients send only a connect request, and pushes are bare
 * @property {(frame: Buffer) => any[]} split without references to `frame`; throws disconnects.badRequest
 * @property {(raw: any) => Command} command throws disconnects.badRequest
 * @property {(raw: any) => number} size approximate, bytes
 * @property {(messages: Encoded[]) => Encoded} join into one frame
 * @property {Encoded} ping
 * @property {any} pong raw command
 * @property {(id: number, error: {code: number, message: string, temporary: boolean}) => Encoded} error
 * @property {(id: number, result: ConnectResult) => Encoded} connect
 * @property {(id: number, result: SubscribeResult) => Encoded} subscribe
 * @property {(id: number, method: string) => Encoded} empty result `{}` of a method
 * @property {(id: number, result: MapResult) => Encoded} published result of a publish with `expected_offset`,
 *   `expected_epoch` or `append`
 * @property {(id: number, data: string | Buffer) => Encoded} rpc `data`: raw, '' = none
 * @property {(id: number, presence: Map<string, string>) => Encoded} presence
 * @property {(id: number, stats: {clients: number, users: number}) => Encoded} presenceStats
 * @property {(id: number, history: {publications: Publication[], offset: number, epoch: string}) => Encoded} history
 * @property {(id: number, method: 'refresh' | 'sub_refresh', result: {expires: boolean, ttl: number}) => Encoded}
 *   refreshed
 * @property {(channel: ChannelRef, publication: Publication) => Uint8Array} publication valid until the next call
 * @property {(channel: ChannelRef, publication: Publication, delta: Buffer | null) => Uint8Array} deltaPublication
 *   without `epoch`, and `version` of a stream; null: full data. Valid until the next call
 * @property {(channel: ChannelRef, info: string, joined: boolean) => Encoded} event join or leave
 * @property {(channel: string, code: number, reason: string) => Encoded} unsubscribed
 * @property {(channel: string, result: SubscribeResult) => Encoded} subscribed server-side
 * @property {(result: {expires: boolean, ttl: number}) => Encoded} refresh
 * @property {(data: string) => Encoded} message without a channel; `data`: JSON text
 * @property {(code: number, reason: string) => Encoded} disconnect on transports without a close frame
 */

export {}
