// Measurements of bench/gateways.js, in a tiny size.

import t from 'tap'
import { skipDriver } from '../kit/drivers.js'
import { withoutProgram } from '../kit/needs.js'
import { NO_FAULT, testFigures } from './figures.js'

/** @import { Row } from './figures.js' */

// They mostly wait.
t.jobs = 2
t.setTimeout(300_000)

testFigures(t, [
  [
    'batching',
    ['--set', 'n=50'],
    false,
    [{ connections: 50, offered_per_s: 60, ...NO_FAULT }],
    ['cpu_us_per_message'],
  ],
  ['conflation', ['--set', 'n=3'], false, [{ offered_per_s: 1000, order_faults: 0 }], ['delivered_per_s']],
  ['hooks', [], false, [{ publish_errors: 0 }], ['published_per_s', 'workers_cpu_us_per_publish']],
  // Of its connections, some are just being opened again.
  ['lifecycle', ['--set', 'n=40'], false, [{ closed: 0 }], ['connections', 'primary_cpu_us_per_open']],
  ['proxy', ['--set', 'n=40'], false, [{ ...NO_FAULT, failed: 0 }], ['reopened_per_s', 'connects_per_s']],
  // Both socket servers, with and without TLS.
  ...['uws, plain', 'node, TLS'].map(
    server =>
      /** @type {Row} */ ([
        'tls',
        ['--set', 'n=40', '--server', server],
        skipDriver('uws') || withoutProgram('openssl'),
        [{ connections: 40 }, { connections: 80 }, { connections: 80, ...NO_FAULT }],
        ['connect_cpu_us'],
      ]),
  ),
  [
    'gc',
    ['--set', 'n=50', '--seconds', '4', '--server', 'start', '--against', 'interval'],
    false,
    [
      { connections: 50, closed: 0 },
      { connections: 30, closed: 0 },
    ],
    ['heap_used_mb', 'idle_cpu_percent'],
  ],
  ['ticks', ['--set', 'n=50'], false, [{ connections: 50 }, { closed: 0, missed: 0 }], ['rss_mb']],
])
