import { centrifugo } from './centrifugo.js'
import { machine } from './machine.js'
import { node } from './node.js'
import { processes } from './processes.js'
import { workers } from './workers.js'

/** All of them, in the order of the answer. docs/metrics.md lists the same; a test holds one against the other. */
export const families = Object.freeze([...centrifugo, ...node, ...workers, ...processes, ...machine])
