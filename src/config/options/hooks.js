import { duration, int, newWorkers, string } from './make.js'

/** The application's own code, see docs/hooks.md. */
export const hooksOptions = newWorkers([
  string(
    'hooks.module',
    '',
    "ES module with the application's handlers, loaded by each worker. A relative path in a file starts at the folder of the file. `hooks: ./hooks.js` is a short form. Halley only.",
    { file: true },
  ),
  duration(
    'hooks.timeout',
    '5s',
    'Time for the promise of a handler in the module; then the call has failed. 0: no limit. Halley only.',
    { min: 0 },
  ),
  int(
    'hooks.max_calls',
    10000,
    'Maximum calls of handlers and proxies that one worker waits for; further ones fail at once. Halley only.',
    { min: 1, change: 'live' },
  ),
  int(
    'hooks.max_call_bytes',
    67108864,
    'Maximum bytes of the events of the calls that one worker waits for; further calls fail at once. ' +
      'Also the limit for notices of ended sessions that wait for a slow handler. Halley only.',
    { unit: 'bytes', min: 65536, change: 'live' },
  ),
])
