// `halley doctor`: compares the limits and kernel settings of a machine with what a number of connections needs.
// facts.js reads the machine -> examine.js runs the checks (files.js, network.js, machine.js) over the recipe
// (recipes.js) and makes findings (finding.js) -> table.js prints them, write.js writes sysctl, limits.d and
// systemd files. May import metrics/ (readers of /proc). Promises: checks are pure functions of the facts; a setting
// is never lowered; nothing is written without `--write`; a file is replaced as a whole or not at all.
export { CONNECTIONS, diagnose, examine, filesOf } from './examine.js'
export { readFacts } from './facts.js'
export { limitsFile, RATE, recipes, serviceFile, sysctlFile } from './recipes.js'
export { summary, table } from './table.js'
export { makeFolder, PLACES, WriteError, writeFiles } from './write.js'
