// biome-ignore-all lint/suspicious/noExplicitAny: types of a package that is not installed
// Fallback types of `@platformatic/kafka` if the package is not installed (second path in tsconfig.json).
// The package requires Node.js 22.22, so `npm ci` does not install it.
export type Admin = any
export type Consumer = any
export type KafkaRecord = any
export type Producer = any
export type RecordsBatch = any
export const Admin: any
export const Consumer: any
export const Producer: any
