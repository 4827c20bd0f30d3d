// `halley doctor`: compares a machine's limits and kernel settings with the needs of a number of connections.
// Checks are pure functions of the facts. Settings are never lowered; nothing is written without `--write`; files are
// replaced atomically.
export { CONNECTIONS, diagnose, examine, filesOf } from './examine.js'
export { readFacts } from './facts.js'
export { limitsFile, RATE, recipes, serviceFile, sysctlFile } from './recipes.js'
export { summary, table } from './table.js'
export { makeFolder, PLACES, WriteError, writeFiles } from './write.js'
