// All types of consumers and republishers, and the only loader of their optional packages.

/** @import { Consumer, ConsumerContext, Destination, DestinationContext } from './contract.js' */

/**
 * `packages`: arguments of `npm install`.
 * @typedef {{packages: readonly string[],
 *   consumer: () => Promise<{create: (context: ConsumerContext<any>) => Consumer}>,
 *   republisher?: () => Promise<{create: (context: DestinationContext<any>) => Destination}>}} Type
 */

/** @type {Readonly<Record<string, Type>>} */
export const TYPES = Object.freeze({
  aws_sqs: { packages: ['@aws-sdk/client-sqs@3'], consumer: () => import('./sqs/consumer.js') },
  kafka: {
    packages: ['@platformatic/kafka@2'],
    consumer: () => import('./kafka/consumer.js'),
    republisher: () => import('./kafka/republisher.js'),
  },
  nats_jetstream: {
    packages: ['@nats-io/transport-node@3', '@nats-io/jetstream@3'],
    consumer: () => import('./nats/consumer.js'),
    republisher: () => import('./nats/republisher.js'),
  },
  postgresql: { packages: ['pg@8'], consumer: () => import('./postgresql/consumer.js') },
  rabbitmq: {
    packages: ['amqplib@2'],
    consumer: () => import('./rabbitmq/consumer.js'),
    republisher: () => import('./rabbitmq/republisher.js'),
  },
  redis_stream: {
    packages: [],
    consumer: () => import('./redis/consumer.js'),
    republisher: () => import('./redis/republisher.js'),
  },
})

/** @param {string} spec `@scope/name@2` @returns {string} `@scope/name` */
const packageOf = spec => spec.replace(/(?!^)@.*$/, '')

/**
 * @template {'consumer' | 'republisher'} T
 * @param {T} kind @param {string} name in the configuration @param {string} type
 * @returns {Promise<Awaited<ReturnType<Required<Type>[T]>>>} its module
 * @throws {Error} in one line if a package is not installed
 */
export async function loadType(kind, name, type) {
  const { packages, [kind]: load } = TYPES[type]
  try {
    return /** @type {any} */ (await load?.())
  } catch (error) {
    // `import` has the first code; `require`, in a CommonJS package, has the second.
    const missing =
      ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes(error.code) &&
      packages.find(spec => error.message.includes(`'${packageOf(spec)}'`))
    if (!missing) throw error
    const requirement = `requires the package ${packageOf(missing)}: npm install ${packages.join(' ')}`
    throw new Error(`${kind} "${name}": type ${type} ${requirement}`)
  }
}
