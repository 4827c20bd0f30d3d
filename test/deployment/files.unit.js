// The deployment files match each other and the gateway. Their formats: files.slow.js; proxies: proxies.slow.js.

import { readdirSync } from 'node:fs'
import t from 'tap'
import { stringify } from 'yaml'
import { configureServer } from '../../src/config/profile.js'
import { directory } from '../config/support.js'
import { image, manifests, read, readYaml, seconds } from './deployment-files.js'

const random = 'ab'.repeat(32)
const secrets = {
  HALLEY_CLIENT_TOKEN_HMAC_SECRET_KEY: random,
  HALLEY_HTTP_API_KEY: random,
  HALLEY_ADMIN_PASSWORD: random,
}
const PLACEHOLDERS = ['client.token.hmac_secret_key', 'http_api.key', 'admin.password'].map(
  key => new RegExp(`^${key}: is a well-known value`),
)

t.test('a node starts with config.yaml once its secrets are replaced', async t => {
  const example = read('examples/deployment/config.yaml')
  const folder = directory(t)
  t.throws(
    () => configureServer({ file: folder.write('as-it-is.yaml', example) }),
    /** @type {any} */ ({ faults: PLACEHOLDERS }),
  )
  const file = folder.write('config.yaml', example.replaceAll('32 random bytes', random))
  const { config, warnings } = configureServer({ file })
  t.strictSame(warnings, [])
  t.match(config, { http_server: { port: 8000, internal_port: 8001 }, health: { enabled: true } })
  const unit = read('examples/deployment/halley.service')
  t.ok(seconds(/^TimeoutStopSec=(.*)$/m.exec(unit)?.[1] ?? '') > config.shutdown.timeout / 1000)
  const { services } = readYaml('examples/deployment/compose.yaml')
  for (const name of ['halley-1', 'halley-2'])
    t.ok(seconds(services[name].stop_grace_period) > config.shutdown.timeout / 1000, name)
})

t.test('the image is built from tagged versions of Node.js and Debian', async t => {
  t.strictSame(
    [...read('Dockerfile').matchAll(/^FROM (\S+)/gm)].map(([, base]) => base),
    ['node:24-trixie-slim', 'node:24-trixie-slim'],
  )
})

t.test('the image listens on all interfaces and needs keys', async t => {
  const { env, user, stopSignal, ports, entrypoint } = image()
  t.throws(
    () => configureServer({ env }),
    /** @type {any} */ ({
      faults: [/^client\.token\.hmac_secret_key: /, /^http_api\.key: /, /^client\.allowed_origins: /],
    }),
  )
  const { config, warnings } = configureServer({
    env: { ...env, ...secrets, HALLEY_CLIENT_ALLOWED_ORIGINS: 'https://www.example.com' },
  })
  t.strictSame(warnings, [])
  t.match(config.http_server, { address: '0.0.0.0', port: ports[0], internal_port: ports[1] })
  t.match(user, /^[1-9]\d*:[1-9]\d*$/, 'not root; a number, so that Kubernetes can tell')
  t.equal(stopSignal, 'SIGTERM')
  t.equal(entrypoint[0], 'node')
})

t.test('compose.yaml configures the nodes and publishes only nginx', async t => {
  const { services } = readYaml('examples/deployment/compose.yaml')
  const file = directory(t).write('config.yaml', read('examples/deployment/config.yaml'))
  const nodes = Object.keys(services).filter(name => name.startsWith('halley'))
  t.strictSame(nodes, ['halley-1', 'halley-2'])
  for (const name of nodes) {
    const { environment, ports, volumes, command } = services[name]
    const env = Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, String(value)]))
    for (const key of Object.keys(secrets)) t.match(env[key], /^\$\{\w+:\?/, `${key} must be given`)
    const { config, warnings } = configureServer({ file, env: { ...image().env, ...env, ...secrets } })
    t.strictSame(warnings, [])
    t.strictSame(config.engine.redis.address, ['redis://redis:6379'])
    t.match(ports[0], /^127\.0\.0\.1:\d+:8001$/)
    t.match(command, volumes[0].split(':')[1])
  }
  t.strictSame(services.nginx.ports, ['80:80', '443:443'])
  t.notOk(services.redis.ports)
})

t.test('the proxies name the nodes of compose.yaml', async t => {
  for (const name of ['nginx.conf', 'haproxy.cfg', 'Caddyfile'])
    for (const node of ['halley-1:8000', 'halley-2:8000'])
      t.match(read(`examples/deployment/${name}`), node, `${name}: ${node}`)
})

t.test('the Kubernetes manifests are consistent', async t => {
  const objects = manifests()
  const of = (kind, name = 'halley') =>
    objects.find(object => object.kind === kind && object.metadata.name === name)
  const { replicas, selector, strategy, template } = of('Deployment').spec
  const pod = template.spec
  const [container] = pod.containers
  const labels = template.metadata.labels
  t.strictSame(selector.matchLabels, labels)
  for (const selected of [
    of('Service').spec.selector,
    of('Service', 'halley-internal').spec.selector,
    of('PodDisruptionBudget').spec.selector.matchLabels,
    of('NetworkPolicy').spec.podSelector.matchLabels,
  ])
    t.strictSame(selected, labels)

  const folder = directory(t)
  const file = folder.write('config.yaml', of('ConfigMap').data['config.yaml'])
  const env = { ...image().env, ...of('Secret').stringData }
  t.throws(() => configureServer({ file, env }), /** @type {any} */ ({ faults: PLACEHOLDERS }))
  const { config, warnings } = configureServer({ file, env: { ...env, ...secrets } })
  t.strictSame(warnings, [])
  t.strictSame(container.args, ['serve', '-c', `${container.volumeMounts[0].mountPath}/config.yaml`])

  const [clients, internal] = container.ports
  t.equal(clients.containerPort, config.http_server.port)
  t.equal(internal.containerPort, config.http_server.internal_port)
  for (const probe of [container.startupProbe, container.readinessProbe])
    t.strictSame(probe.httpGet, { path: config.health.handler_prefix, port: internal.name })
  t.strictSame(
    of('Service').spec.ports.map(port => port.targetPort),
    [clients.name],
  )
  t.equal(of('Service').spec.sessionAffinity, 'None')
  const pause = Number(container.lifecycle.preStop.exec.command[1])
  t.ok(pod.terminationGracePeriodSeconds > pause + config.shutdown.timeout / 1000, 'the drain has time')
  t.ok(replicas > of('PodDisruptionBudget').spec.maxUnavailable)
  t.equal(strategy.rollingUpdate.maxUnavailable, 0)
  t.match(pod.securityContext.runAsUser, Number(image().user.split(':')[0]))
  t.match(container.resources.limits.cpu, /^\d+$/, 'whole cores: a worker for each')

  const example = readYaml('examples/deployment/config.yaml')
  const tree = configureServer({
    file: folder.write('example.yaml', stringify(example)),
    env: { ...env, ...secrets, HALLEY_HTTP_SERVER_ADDRESS: '0.0.0.0' },
  }).config
  t.strictSame(config, tree, 'the same as config.yaml')
})

t.test('docs/deployment.md names each file', async t => {
  const page = read('docs/deployment.md')
  for (const name of readdirSync(new URL('../../examples/deployment', import.meta.url)))
    t.match(page, `examples/deployment/${name}`)
})
