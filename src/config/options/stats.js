import { bool, duration, int, string } from './make.js'

export const statsOptions = [
  bool(
    'admin.enabled',
    'Serve the admin page and what `halley dashboard URL` asks. Off all the same while `admin.password` is empty.',
    true,
  ),
  string('admin.password', '', 'The admin key.', { secret: true }),
  string(
    'admin.secret',
    '',
    'Signs the tokens that the key is exchanged for. Empty: made from the key. The same on every node.',
    { secret: true },
  ),
  string('admin.handler_prefix', '/admin', 'Path of the admin page.', { prefix: true }),

  bool('prometheus.enabled', 'Serve metrics of all workers in the text format of Prometheus.'),
  string('prometheus.handler_prefix', '/metrics', 'Path of the metrics.', { prefix: true }),

  string(
    'stats.socket',
    'auto',
    'Unix socket for `halley dashboard`: a path, `auto` (by the port, in a folder of this user) or `none`. Halley only.',
  ),
  string('stats.csv.file', '', 'File to append a row of figures to each second. Empty: none. Halley only.'),
  int('stats.csv.max_bytes', 104857600, 'Size at which that file is rotated. Halley only.', {
    unit: 'bytes',
    min: 65536,
  }),
  int('stats.csv.keep', 5, 'Rotated files that are kept. Halley only.', { max: 1000 }),

  bool(
    'gc.idle',
    'Give memory back after a burst of connections: one collection once a worker has become quiet. Halley only.',
    true,
  ),
  duration(
    'gc.interval',
    '0s',
    'Collect garbage in each worker this often, one worker after another. 0: when V8 thinks fit. Halley only.',
    { min: 0 },
  ),
]
