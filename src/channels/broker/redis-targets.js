// Connections to Redis for the parts of the gateway that are no engine: consumers and republishers.

export { parseTargets } from './redis/address.js'
