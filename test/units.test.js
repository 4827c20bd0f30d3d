// Every test/**/*.unit.js in one process: tests of functions, which start nothing, open nothing and wait for nothing.
// Each would take longer to start than to run. The report of a failure names its file.

import { readdirSync } from 'node:fs'

const files = readdirSync(new URL('.', import.meta.url), { recursive: true, encoding: 'utf8' })
for (const file of files.filter(name => name.endsWith('.unit.js')).sort()) await import(`.//${file}`)
