// The contract of a codec: bytes of a frame <-> commands, replies and pushes of the Centrifuge protocol. This folder
// imports only errors; types of publications come from the broker's contract.
// Promise: a session never sees the wire format, payloads pass unchanged as bytes or raw JSON text, and malformed
// input is an error of the table, never an exception of the parser. A hub encodes each publication once for each codec
// with a subscriber. test/clients/protocol checks all codecs against this contract.

/** @import { Publication } from '../../channels/broker/contract.js' */

/**
 * @typedef {object} Command
 * @property {number} id 0 = none
 * @property {string} method the request's field name ('connect', 'subscribe' ...), '' for an empty command (a pong)
 * @property {any} request its fields, type-checked; absent ones are undefined. Payloads (`data`) are raw JSON texts
 *   (string) or bytes (Buffer)
 * @property {boolean} ping the command has a `ping` field besides the request
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
 * @property {boolean} [delta] delta-negotiated: JSON writes the data of all publications as strings (client protocol)
 * @property {(Buffer | null)[]} [deltas] with `delta`: the delta of each of `publications` against the previous one,
 *   null: in full
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
 * @property {string} [session] emulation session, '' on WebSocket
 * @property {string} [node] node parameter of the emulation endpoint, '' = none
 * @property {number} [time] unix ms
 */

/** @typedef {string | Uint8Array} Encoded one message, not yet framed */

/**
 * @typedef {object} Codec
 * @property {string} name
 * @property {boolean} binary its frames are binary WebSocket frames, and payloads may be any bytes
 * @property {boolean} unidirectional clients send only their connect request; pushes are not wrapped in replies
 *   (client protocol). Such a codec needs no `split`, `command`, `size` or replies to other commands
 * @property {(frame: Buffer) => any[]} split the raw commands of a frame; throws disconnects.badRequest. Raw commands
 *   hold no reference to `frame`, so they may wait
 * @property {(raw: any) => Command} command throws disconnects.badRequest
 * @property {(raw: any) => number} size approximate bytes of a waiting raw command
 * @property {(messages: Encoded[]) => Encoded} join several messages into one frame
 * @property {Encoded} ping
 * @property {any} pong the raw command of a pong
 * @property {(id: number, error: {code: number, message: string, temporary: boolean}) => Encoded} error
 * @property {(id: number, result: ConnectResult) => Encoded} connect
 * @property {(id: number, result: SubscribeResult) => Encoded} subscribe
 * @property {(id: number, method: string) => Encoded} empty the result `{}` of a method
 * @property {(id: number, data: string | Buffer) => Encoded} rpc `data`: raw, '' = none
 * @property {(id: number, presence: Map<string, string>) => Encoded} presence
 * @property {(id: number, stats: {clients: number, users: number}) => Encoded} presenceStats
 * @property {(id: number, history: {publications: Publication[], offset: number, epoch: string}) => Encoded} history
 * @property {(id: number, method: 'refresh' | 'sub_refresh', result: {expires: boolean, ttl: number}) => Encoded}
 *   refreshed
 * @property {(channel: string, publication: Publication) => Uint8Array} publication
 *   valid until the next call
 * @property {(channel: string, publication: Publication, delta: Buffer | null) =>
 *   Uint8Array} deltaPublication for delta-negotiated subscriptions: the delta, or the full payload if it is null (a
 *   JSON string in both cases; no `epoch` and `version`); valid until the next call
 * @property {(channel: string, info: string, joined: boolean) => Encoded} event a join or a leave
 * @property {(channel: string, code: number, reason: string) => Encoded} unsubscribed
 * @property {(channel: string, result: SubscribeResult) => Encoded} subscribed a new server-side subscription
 * @property {(result: {expires: boolean, ttl: number}) => Encoded} refresh
 * @property {(code: number, reason: string) => Encoded} disconnect the last message on transports without a close frame
 */

export {}
