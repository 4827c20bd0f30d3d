// Context and contract of server API methods.

/** @import { ChannelOptions } from '../../config/options.js' */
/** @import { NamespaceRoutes } from '../../clients/auth/republish-rules.js' */
/** @import { Broker, MapRules } from '../../channels/broker/contract.js' */
/** @import { Traffic } from '../../metrics/traffic.js' */
/** @import { NodeInfo } from './info.js' */
/** @import { Field } from './params.js' */
/** @import { Publisher } from './publish.js' */
/** @import { Requests } from './requests.js' */

/**
 * The part of a namespace that the API reads. `metaTtl`: ms; `dataFormat`: '', 'json', 'json_object' or 'binary';
 * `targeted`: publications may have a target.
 * @typedef {{options: ChannelOptions, historyOn: boolean, metaTtl: number, republish: NamespaceRoutes | null,
 *   dataFormat: string, kind: string, targeted: boolean, mapRules: Readonly<MapRules> | null}} Namespace
 */

/** @typedef {{uid: string, name: string, version: string, startedAt: number}} NodeIdentity startedAt: unix ms */

/**
 * `requests`: to clients; null: not available in this process.
 * @typedef {{rules: {resolve: (channel: string) => Namespace | undefined}, broker: Broker, publisher: Publisher,
 *   requests: Requests | null, nodeInfo: NodeInfo, traffic: Traffic, logger: {error: (fields: object, message: string) => void}}} ApiContext
 */

/**
 * A method of the API. `run` returns the result as JSON text, so payloads pass unchanged; it throws a ReplyError.
 * @typedef {{fields: Record<string, Field>,
 *   run: (params: any, context: ApiContext) => string | Promise<string>}} Method
 */

export {}
