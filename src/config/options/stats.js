import { COMMAND } from '../../base/version.js'
import { bool, duration, int, newWorkers, string } from './make.js'

export const statsOptions = newWorkers([
  bool(
    'admin.enabled',
    `Serve the admin page, and \`${COMMAND} dashboard URL\`. Off while \`admin.password\` is empty.`,
    true,
  ),
  string('admin.password', '', 'Key to log in to the admin page.', {
    secret: true,
    change: 'live',
    mounts: 'workers',
  }),
  string(
    'admin.secret',
    '',
    'Secret that signs the tokens of logged-in admins. Empty: derived from the password. Must be the same on every node.',
    { secret: true, change: 'live' },
  ),
  string('admin.handler_prefix', '/admin', 'Path of the admin page.', { prefix: true }),

  bool('prometheus.enabled', 'Serve metrics of all workers in the Prometheus text format.'),
  string('prometheus.handler_prefix', '/metrics', 'Path of the metrics.', { prefix: true }),

  string(
    'stats.socket',
    'auto',
    `Unix socket for \`${COMMAND} dashboard\`: a path, \`auto\` (named by the port, in a folder of the current user) ` +
      'or `none`. Halley only.',
    { change: 'start' },
  ),
  string(
    'stats.csv.file',
    '',
    'CSV file to which a row of statistics is appended each second. Empty: none. Halley only.',
    { change: 'live' },
  ),
  int('stats.csv.max_bytes', 104857600, 'Size at which the CSV file is rotated. Halley only.', {
    unit: 'bytes',
    min: 65536,
    change: 'live',
  }),
  int('stats.csv.keep', 5, 'Number of rotated CSV files to keep. Halley only.', {
    max: 1000,
    change: 'live',
  }),

  bool(
    'gc.idle',
    'Return memory after a burst of connections: collect garbage once when the worker is idle again. Halley only.',
    true,
    { change: 'live' },
  ),
  duration(
    'gc.interval',
    '0s',
    'Interval of garbage collections in each worker, one worker after another. 0: only when V8 decides. Halley only.',
    { min: 0, change: 'live' },
  ),
])
