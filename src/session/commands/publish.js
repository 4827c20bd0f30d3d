import { errors } from '../../errors.js'

/**
 * @param {import('../session.js').Session} session
 * @param {number} id
 * @param {any} request
 */
export function publish(session, id, { channel, data }) {
  const { rules, broker } = session.gateway
  const namespace = rules.resolve(channel)
  if (!namespace) throw errors.unknownChannel
  if (!rules.checkName(channel, namespace)) throw errors.badRequest
  const format = namespace.dataFormat
  if (data === undefined && format !== 'binary') throw errors.badRequest
  // The frame was parsed as JSON, so the payload is JSON.
  if (format === 'json_object' && !data.startsWith('{')) throw errors.badRequest
  const subscription = session.subscription(channel)
  if (!rules.mayPublish(namespace, session.user, subscription !== undefined)) throw errors.permissionDenied
  const { options, metaTtl } = namespace
  session.publishing()
  broker.publish(
    channel,
    data ?? '',
    {
      historySize: namespace.historyOn ? options.history_size : 0,
      historyTtl: options.history_ttl,
      metaTtl,
      info: session.clientInfo(subscription?.details.info ?? ''),
      json: data !== undefined,
      delta: options.delta_publish,
    },
    error =>
      session.published(id, () => {
        if (error) throw error
        session.send(session.codec.empty(id, 'publish'))
      }),
  )
}
