// The server API over HTTP: one path per method below http_api.handler_prefix. A method is a row in methods.js: its
// fields (params.js) and a `run` that returns JSON text. Requests are validated completely before they run, payloads
// pass as bytes, keys are compared by digest, and external text never runs as a backtracking RegExp.

import { createSecretCheck } from '../../clients/auth/secret.js'
import { Call } from '../../clients/transport/calls.js'
import { derive } from '../../config/derive.js'
import { answerError, answerJson, answerText, answerUnauthorized } from './answers.js'
import { NodeInfo } from './info.js'
import { methods } from './methods.js'
import { BadBody, explain, parseJson, readObject, readPayload } from './params.js'
import { Publisher, publish, publishResult, readPublish } from './publish.js'
import { runBatch, runCall, runLegacy } from './run.js'
import { MAX_BODY } from './wire.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Broker } from '../../channels/broker/contract.js' */
/** @import { Exchange, SocketServer } from '../../clients/server/contract.js' */
/** @import { Refusals } from '../../metrics/refusals.js' */
/** @import { Traffic } from '../../metrics/traffic.js' */
/** @import { Calls } from '../../clients/transport/calls.js' */
/** @import { ApiContext, Method, NodeIdentity } from './context.js' */
/** @import { Requests } from './requests.js' */

/** @param {string} request name of a method and its fields @returns {[string, string]} */
function cut(request) {
  const end = request.indexOf('\n')
  return [request.slice(0, end), request.slice(end + 1)]
}

/**
 * @param {{key: string, previous_key: string, insecure: boolean}} options
 * @returns {(exchange: Exchange) => boolean}
 */
function createAccess({ key, previous_key: previous, insecure }) {
  if (insecure) return () => true
  // The previous key alone grants no access.
  if (key === '') return () => false
  const isKey = createSecretCheck(key)
  const isPrevious = createSecretCheck(previous)
  const matches = (/** @type {string} */ given) => isKey(given) || isPrevious(given)
  return exchange => {
    const own = exchange.header('x-api-key')
    if (own !== '') {
      if (matches(own)) return true
    } else {
      const [, word] = /^apikey +(.*)$/i.exec(exchange.header('authorization')) ?? []
      if (word !== undefined && matches(word)) return true
    }
    if (exchange.query === '') return false
    const given = new URLSearchParams(exchange.query).get('api_key')
    return given !== null && matches(given)
  }
}

/**
 * Runs an authorized request with a complete body; throws or rejects with BadBody or the error to send.
 * @typedef {(body: string, exchange: Exchange, transport: boolean, context: ApiContext) => void | Promise<void>} Handle
 */

/** The hot path: creates no promises and only objects needed by the broker. @type {Handle} */
function handlePublish(body, exchange, transport, context) {
  const params = readPublish(body)
  if (params.ack !== null) return handleMethod(publish)(body, exchange, transport, context)
  const payload = readPayload(params.data, params.b64data)
  context.publisher.publish(params.channel, payload, params, (error, offset, epoch) => {
    if (error !== null)
      answerError(exchange, explain(error, publish.fields, parseJson(body)), transport, context)
    else
      answerJson(
        exchange,
        offset === 0 && epoch === '' ? '{"result":{}}' : `{"result":${publishResult(offset, epoch)}}`,
      )
  })
}

/** @param {Method} method @returns {Handle} */
const handleMethod = method => async (body, exchange, _transport, context) => {
  const params = readObject(method.fields, parseJson(body), body)
  try {
    answerJson(exchange, `{"result":${await method.run(params, context)}}`)
  } catch (error) {
    throw explain(error, method.fields, parseJson(body))
  }
}

/** @param {typeof runBatch} run @returns {Handle} */
const handleSeveral = run => (body, exchange, _transport, context) =>
  run(body, context).then(text => answerJson(exchange, text))

/**
 * @param {object} parts
 * @param {Config} parts.config at the start
 * @param {() => Config['http_api']} parts.settings its current block `http_api`
 * @param {ApiContext['rules']} parts.rules
 * @param {Broker} parts.broker
 * @param {NodeIdentity} parts.node
 * @param {Traffic} parts.traffic
 * @param {Pick<Refusals, 'add'>} parts.refusals
 * @param {ApiContext['logger']} parts.logger
 * @param {Requests | null} [parts.requests] to clients; null: not available
 * @param {() => number} [parts.clock]
 */
export function createApi({
  config,
  settings,
  rules,
  broker,
  node,
  traffic,
  refusals,
  logger,
  requests = null,
  clock = Date.now,
}) {
  const options = config.http_api
  const access = derive(settings, createAccess)
  /** @type {ApiContext} */
  const context = {
    rules,
    broker,
    publisher: new Publisher(rules, broker.pubsub, traffic),
    requests,
    nodeInfo: new NodeInfo(node, broker.control, config.node.info_metrics_aggregate_interval, clock),
    traffic,
    logger,
  }

  /** @param {Exchange} exchange @param {Error} error @param {boolean} transport */
  const refuse = (exchange, error, transport) => {
    if (error instanceof BadBody) answerText(exchange, 400, error.message)
    else answerError(exchange, error, transport, context)
  }

  /** @param {Handle} handle @param {{count: number}} [calls] counter; default: `handle` counts */
  const serve = (handle, calls) => (/** @type {Exchange} */ exchange) => {
    if (!access()(exchange)) {
      refusals.add('api_key', exchange)
      return answerUnauthorized(exchange)
    }
    const transport =
      settings().error_mode === 'transport' || exchange.header('x-centrifugo-error-mode') === 'transport'
    exchange.body(MAX_BODY, bytes => {
      if (bytes === null) return answerText(exchange, 413, 'Request Entity Too Large')
      if (calls) calls.count++
      try {
        handle(bytes.toString(), exchange, transport, context)?.catch(error =>
          refuse(exchange, error, transport),
        )
      } catch (error) {
        refuse(exchange, error, transport)
      }
    })
  }

  return {
    /** For the admin endpoints, which share the methods. */
    context,

    /** @param {SocketServer} server @param {Calls} calls of the primary, for embedding programs */
    mount(server, calls) {
      calls.on(Call.API, (request, answer) => {
        const [name, text] = cut(request.toString())
        runCall(name, text, context).then(answer)
      })
      if (options.disabled) return
      const prefix = options.handler_prefix.replace(/\/+$/, '')
      /** @param {string} path @param {Handle} handle @param {{count: number}} [calls] */
      const route = (path, handle, calls) => {
        server.route('POST', path, serve(handle, calls))
        server.route('*', path, exchange =>
          answerText(exchange, 405, 'Method Not Allowed', { allow: 'POST' }),
        )
      }
      for (const [name, method] of methods) {
        route(
          `${prefix}/${name}`,
          name === 'publish' ? handlePublish : handleMethod(method),
          traffic.api(name),
        )
      }
      route(`${prefix}/batch`, handleSeveral(runBatch))
      // With an empty prefix this path is the front page.
      if (prefix === '') server.route('POST', '/', serve(handleSeveral(runLegacy)))
      else route(prefix, handleSeveral(runLegacy))
    },
  }
}
