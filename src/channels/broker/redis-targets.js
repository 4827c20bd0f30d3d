// Connections to Redis for the parts of the gateway that are no engine: consumers and republishers.

export { clusterConnector, observed, parseTargets, ServerConnector, slotOf } from './redis/address.js'
