// Memory that connections keep of responses of event proxies.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { decodeAnswer } from '../../../src/backends/hooks/http.js'
import { readAnswer } from '../../../src/backends/hooks/proxy-answers.js'
import { CapabilitySets } from '../../../src/clients/hooks/capabilities.js'

t.test('info and meta do not retain the response', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  const used = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const texts = { info: '{"name":"a text of some length"}', meta: '{"more":"a text of some length"}' }
  const kept = []
  const before = used()
  for (let i = 0; i < 50; i++) {
    const { info, meta } = texts
    const body = `{"result":{"info":${info},"meta":${meta},"data":"${String(i).padEnd(1_000_000, 'x')}"}}`
    const answer = readAnswer('connect', decodeAnswer('connect', Buffer.from(body)), new CapabilitySets())
    kept.push({ info: answer.info, meta: answer.meta })
  }
  t.ok(used() - before < 20_000_000)
  for (const each of kept) t.strictSame(each, texts)
})
