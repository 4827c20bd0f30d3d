// A gateway whose uWebSockets.js does not load, as on a system with another glibc: it reports that to users.

import t from 'tap'
import { halley } from '../../kit/cli.js'
import { watched } from '../../processes/primary/telemetry-rig.js'

const REASON = 'uWebSockets.js is not installed: install without --omit=optional'

/** Makes the import of uWebSockets.js fail, in the process and in those that it starts. */
const hooks = `
  export const resolve = (name, context, next) => {
    if (name !== 'uWebSockets.js') return next(name, context)
    throw Object.assign(new Error("Cannot find package 'uWebSockets.js'"), { code: 'ERR_MODULE_NOT_FOUND' })
  }`
const dataUrl = source => `data:text/javascript,${encodeURIComponent(source)}`
const register = `import { register } from 'node:module'; register(${JSON.stringify(dataUrl(hooks))})`
const env = { NODE_OPTIONS: `--import ${dataUrl(register)}` }

t.test('without uWebSockets.js, the stats, the events and the log name the reason and the fix', async t => {
  const { gateway, watcher } = await watched(t, { workers: 2 }, { env })
  const driverEvent = ({ events, snapshot }) =>
    (events ?? snapshot?.events ?? []).find(({ kind }) => kind === 'driver')
  const message = watcher.messages.find(driverEvent) ?? (await watcher.next(driverEvent))
  t.match(watcher.messages[0].node, { driver: 'node', driver_fallback: REASON })
  t.match(driverEvent(message), { level: 'warn', text: `node driver: ${REASON}` })
  t.equal(gateway.lines.filter(({ msg }) => msg?.endsWith(REASON)).length, 1, 'once, not for each worker')
})

t.test('without a fallback there is no fallback event', async t => {
  const { watcher } = await watched(t, { workers: 1, http_server: { driver: 'node' } })
  const [{ node, events }] = watcher.messages
  t.equal(node.driver_fallback, '')
  t.notOk(events.some(({ kind }) => kind === 'driver'))
})

t.test('doctor reports the fallback', async t => {
  const { out } = await halley(['doctor', '-n', '1000', '--json'])
  t.match(
    JSON.parse(out).findings.find(({ id }) => id === 'uWebSockets.js'),
    { is: /^(?:loads|does not load)$/, should: 'loads', status: /^(?:ok|tight)$/ },
  )
})
