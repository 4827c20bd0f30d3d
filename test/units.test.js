// Runs every test/**/*.unit.js in one process: tests that start no process, open no socket and do not wait. The report
// of a failure names its file.

import { readdirSync } from 'node:fs'

const files = readdirSync(new URL('.', import.meta.url), { recursive: true, encoding: 'utf8' })
for (const file of files.filter(name => name.endsWith('.unit.js')).sort()) await import(`.//${file}`)
