// The parts of the gateway that methods of the server API act on, and the contract of a method.

/** @import { Broker } from '../broker/contract.js' */
/** @import { Traffic } from '../stats/traffic.js' */
/** @import { NodeInfo } from './info.js' */
/** @import { Field } from './params.js' */
/** @import { Publisher } from './publish.js' */

/**
 * @typedef {object} Namespace the part of a namespace that the API looks at
 * @property {any} options the channel options
 * @property {boolean} historyOn
 * @property {number} metaTtl ms
 * @property {string} dataFormat '', 'json', 'json_object' or 'binary'
 */

/**
 * @typedef {object} NodeIdentity
 * @property {string} uid
 * @property {string} name
 * @property {string} version
 * @property {number} startedAt ms since 1970
 */

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
 * A method of the API.
 * @typedef {object} Method
 * @property {Record<string, Field>} fields
 * @property {(params: any, context: ApiContext) => string | Promise<string>} run gives the result as JSON text, because payloads
 *   in it are passed on as they came; throws a ReplyError
 */

export {}
