import t from 'tap'
import { RepublishRules } from '../../../src/clients/auth/republish-rules.js'
import { Source } from '../../../src/config/republish.js'
import { entry } from '../../backends/queues/republishers/rig.js'

/** @param {any[]} republish */
const rules = (...republish) => new RepublishRules(/** @type {any} */ ({ republish: republish.map(entry) }))

t.test('namespaces and patterns select channels, sources select publishers', async t => {
  const all = rules(
    { channels: ['chat:*', 'news'] },
    { channels: [], namespaces: ['chat'], sources: ['api', 'consumer'] },
    { enabled: false },
    { channels: ['chat:{1,2}'], sources: ['api'] },
  )
  const chat = all.of('chat', ['chat:', '$chat:'])
  t.equal(chat?.route('chat:1', Source.CLIENT)?.to, 0b001)
  t.equal(chat?.route('chat:1', Source.API)?.to, 0b110)
  t.equal(chat?.route('chat:3', Source.API)?.to, 0b010)
  t.equal(chat?.route('chat:3', Source.CONSUMER)?.to, 0b010)
  t.equal(all.of('', ['', '$'])?.route('news', Source.CLIENT)?.to, 1)
  t.equal(all.of('', ['', '$'])?.route('other', Source.CLIENT), null)
  t.equal(all.of('game', ['game:', '$game:']), null, 'a namespace that no pattern can match')
})

t.test('a pattern that starts with a wildcard or $ matches in every namespace', async t => {
  const all = rules({ channels: ['*:public'] })
  t.equal(all.of('game', ['game:', '$game:'])?.route('game:public', Source.CLIENT)?.to, 1)
  t.equal(
    rules({ channels: ['$game:*'] })
      .of('game', ['game:', '$game:'])
      ?.route('$game:1', 0)?.to,
    1,
  )
})

t.test('a route has all options of its republishers', async t => {
  const all = rules({}, { overflow: 'block' }, { required: true, required_timeout: 70, include_meta: true })
  t.same(all.of('', [''])?.route('a', Source.CLIENT), {
    to: 0b111,
    block: 0b010,
    wait: 70,
    source: Source.CLIENT,
    withMeta: true,
  })
  t.ok(all.withMeta)
  t.equal(all.of('', [''])?.route('a', 0), all.of('', [''])?.route('b', 0), 'all channels share the route')
})

t.test('routes stay correct for more channels than the cache holds', async t => {
  const one = rules({ channels: ['a*'] }).of('', [''])
  for (let i = 0; i < 25_000; i++) if (one?.route(`a${i}`, 0)?.to !== 1) t.fail('a channel without its route')
  t.equal(one?.route('b', 0), null)
})

t.test('without republishers there are no routes', async t => t.equal(rules().of('', ['']), null))
