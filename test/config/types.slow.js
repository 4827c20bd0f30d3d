// TypeScript derives the type of the configuration from the table of options: a misspelt option does not compile.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import ts from 'typescript'

const root = fileURLToPath(new URL('../..', import.meta.url))
const config = JSON.parse(readFileSync(`${root}tsconfig.json`, 'utf8'))
const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root)

/** Expression -> type, or error of TypeScript. */
const CASES = {
  'config.client.pong_timeout': 'number',
  'config.client.pong_timout': "Did you mean 'pong_timeout'?",
  'config.http_server.tls.enabled': 'boolean',
  'config.http_server.tsl': "Property 'tsl' does not exist",
  'config.http_server.driver': '"auto" | "uws" | "node"',
  'config.lifecycle.events[0]':
    '"connected" | "subscribed" | "unsubscribed" | "disconnected" | "occupied" | "vacated"',
  "config.engine.type === 'nats'": 'types \'"memory" | "redis"\' and \'"nats"\' have no overlap',
  'config.engine.redis.address[0]': 'string',
  'config.engine.redis.adress': "Did you mean 'address'?",
  'config.channel.without_namespace.history_ttl': 'number',
  'config.channel.namespaces[0].name': 'string',
  'config.channel.namespaces[0].presense': "Did you mean 'presence'?",
  'config.client.proxy.connect.breaker.interval': 'number',
  'config.proxies[0].http.status_to_code_transforms[0].to_error.temporary': 'boolean',
  'config.proxies[0].breaker.intervall': "Did you mean 'interval'?",
  'config.consumers[0].kafka.tls.enabled': 'boolean',
  'config.consumers[0].rabbitmq.bindings[0].routing_key': 'string',
  'config.consumers[0].kafka.broker': "Did you mean 'brokers'?",
  'config.republish[0].rabbitmq.exchange': 'string',
  'config.republish[0].rabbitmq.exchanges': "Did you mean 'exchange'?",
}

t.test('options have types: a misspelt one is a TypeScript error', async t => {
  const file = `${root}src/config/misspelt.js`
  const lines = Object.keys(CASES).map(
    expression => `export const _${expression.replace(/\W/g, '_')} = ${expression}`,
  )
  const text = [
    "import { loadConfig } from './load.js'",
    'const { config } = loadConfig()',
    ...lines,
    '',
  ].join('\n')
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists } = host
  host.fileExists = name => name === file || fileExists(name)
  host.getSourceFile = (name, ...others) =>
    name === file ? ts.createSourceFile(name, text, options.target ?? 99) : getSourceFile(name, ...others)
  const program = ts.createProgram([file], options, host)
  const source = /** @type {ts.SourceFile} */ (program.getSourceFile(file))
  const checker = program.getTypeChecker()
  const errors = program.getSemanticDiagnostics(source)
  const found = Object.entries(CASES).map(([expression, wanted], i) => {
    const error = errors.find(({ start = 0 }) => source.getLineAndCharacterOfPosition(start).line === i + 2)
    if (error !== undefined) {
      const message = ts.flattenDiagnosticMessageText(error.messageText, '\n')
      return [expression, message.includes(wanted) ? wanted : message]
    }
    const [declaration] = /** @type {any} */ (source.statements[i + 2]).declarationList.declarations
    return [expression, checker.typeToString(checker.getTypeAtLocation(declaration))]
  })
  t.same(Object.fromEntries(found), CASES)
})
