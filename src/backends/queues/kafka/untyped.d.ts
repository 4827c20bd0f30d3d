// biome-ignore-all lint/suspicious/noExplicitAny: the types are those of a package that is not there
// Stands in for the types of `@platformatic/kafka` where the package is not installed: tsconfig.json names it second.
// The package asks for Node.js 22.22, so `npm ci` does not install it.
export type Admin = any
export type Consumer = any
export type KafkaRecord = any
export type Producer = any
export type RecordsBatch = any
export const Admin: any
export const Consumer: any
export const Producer: any
