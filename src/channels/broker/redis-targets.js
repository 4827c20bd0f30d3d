// Redis connections for parts other than engines: consumers and republishers.

export { clusterConnector, observed, parseTargets, ServerConnector, slotOf } from './redis/address.js'
