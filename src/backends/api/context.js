// What methods of the server API act on, and the contract of a method.

/** @import { ChannelOptions } from '../../config/options.js' */
/** @import { NamespaceRoutes } from '../../clients/auth/republish-rules.js' */
/** @import { Broker } from '../../channels/broker/contract.js' */
/** @import { Traffic } from '../../metrics/traffic.js' */
/** @import { NodeInfo } from './info.js' */
/** @import { Field } from './params.js' */
/** @import { Publisher } from './publish.js' */

/**
 * @typedef {object} Namespace the part that the API reads
 * @property {ChannelOptions} options the channel options
 * @property {boolean} historyOn
 * @property {number} metaTtl ms
 * @property {NamespaceRoutes | null} republish
 * @property {string} dataFormat '', 'json', 'json_object' or 'binary'
 */

/** @typedef {{uid: string, name: string, version: string, startedAt: number}} NodeIdentity startedAt: unix ms */

/**
 * @typedef {object} ApiContext
 * @property {{resolve: (channel: string) => Namespace | undefined}} rules
 * @property {Broker} broker
 * @property {Publisher} publisher
 * @property {NodeInfo} nodeInfo
 * @property {Traffic} traffic
 * @property {{error: (fields: object, message: string) => void}} logger
 */

/**
 * A method of the API. `run` returns the result as JSON text, so payloads pass unchanged; it throws a ReplyError.
 * @typedef {object} Method
 * @property {Record<string, Field>} fields
 * @property {(params: any, context: ApiContext) => string | Promise<string>} run
 */

export {}
