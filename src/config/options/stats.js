import { bool, duration, int, string } from './make.js'

export const statsOptions = [
  bool(
    'admin.enabled',
    'Serve the admin page, and `halley dashboard URL`. Off while `admin.password` is empty.',
    true,
  ),
  string('admin.password', '', 'Key to log in to the admin page.', { secret: true }),
  string(
    'admin.secret',
    '',
    'Secret that signs the tokens of logged-in admins. Empty: derived from the password. Must be the same on every node.',
    { secret: true },
  ),
  string('admin.handler_prefix', '/admin', 'Path of the admin page.', { prefix: true }),

  bool('prometheus.enabled', 'Serve metrics of all workers in the Prometheus text format.'),
  string('prometheus.handler_prefix', '/metrics', 'Path of the metrics.', { prefix: true }),

  string(
    'stats.socket',
    'auto',
    'Unix socket for `halley dashboard`: a path, `auto` (named by the port, in a folder of the current user) or `none`. Halley only.',
  ),
  string(
    'stats.csv.file',
    '',
    'CSV file to which a row of statistics is appended each second. Empty: none. Halley only.',
  ),
  int('stats.csv.max_bytes', 104857600, 'Size at which the CSV file is rotated. Halley only.', {
    unit: 'bytes',
    min: 65536,
  }),
  int('stats.csv.keep', 5, 'Number of rotated CSV files to keep. Halley only.', { max: 1000 }),

  bool(
    'gc.idle',
    'Return memory after a burst of connections: collect garbage once when the worker is idle again. Halley only.',
    true,
  ),
  duration(
    'gc.interval',
    '0s',
    'Interval of garbage collections in each worker, one worker after another. 0: only when V8 decides. Halley only.',
    { min: 0 },
  ),
]
