// Writes a row for each message of its parent, until it is killed.

import { CsvWriter } from '../../src/metrics/csv-writer.js'
import { mockSnapshots } from './mock.js'

const snapshots = mockSnapshots({ seconds: 100 })
const writer = new CsvWriter({ file: process.argv[2] })
let next = 0

process.on('message', () => writer.write(snapshots[next++]))
