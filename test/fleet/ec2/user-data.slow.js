// The user data of a drone as EC2's machines have it: cloud-init and systemd read it, and its script sets up a clean
// machine.

import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { copyFile, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { Links } from '../../../fleet/controller/links.js'
import { packProgram } from '../../../fleet/program.js'
import { tempDir } from '../../kit/folders.js'
import { withoutProgram } from '../../kit/needs.js'
import { cloudConfigOf, commandOf, fileOf, writeFiles } from './machine.js'

const run = promisify(execFile)
const RUN = 'run-7k2m'
const SECRET = 'c0ffee'.repeat(10).padEnd(64, '0')
const ARCH = { x64: 'x64', arm64: 'arm64' }[process.arch]
const VERSION = 'v22.99.0'

const folder = tempDir(t)

/**
 * What EC2 and the distribution of Node.js serve: a token first, the launch index, and an archive that is damaged at
 * first.
 */
const requests = /** @type {string[]} */ ([])
let damaged = 1
const archive = join(folder, 'node.tar.gz')
const server = createServer(async (request, response) => {
  const path = `${request.method} ${request.url}`
  requests.push(path)
  const name = `node-${VERSION}-linux-${ARCH}.tar.gz`
  if (path === 'PUT /latest/api/token' && request.headers['x-aws-ec2-metadata-token-ttl-seconds'])
    return void response.end('a-token')
  if (
    path === 'GET /latest/meta-data/ami-launch-index' &&
    request.headers['x-aws-ec2-metadata-token'] === 'a-token'
  )
    return void response.end('3')
  if (path === 'GET /dist/latest-v22.x/SHASUMS256.txt') {
    const sum = createHash('sha256')
      .update(await readFile(archive))
      .digest('hex')
    return void response.end(
      `${'0'.repeat(64)}  node-${VERSION}.tar.gz\n${sum}  ${name}\n${sum}  win-x64/node.exe\n`,
    )
  }
  if (path === `GET /dist/latest-v22.x/${name}`)
    return void response.end(damaged-- > 0 ? 'half of it' : await readFile(archive))
  response.writeHead(404).end()
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
t.teardown(() => server.close())
const here = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`

// The lines of drones arrive here.
/** @type {(hello: any) => void} */
let greet
const hello = new Promise(resolve => {
  greet = resolve
})
const program = await packProgram()
const links = new Links(
  { run: RUN, secret: SECRET },
  {
    onHello: hello => {
      greet(hello)
      return ''
    },
    onProgram: async () => program,
    onMessage: () => {},
    onLost: () => {},
    onFault: text => t.comment(text),
  },
)
const port = await links.listen('127.0.0.1', 0)
t.teardown(() => links.close())

const boot = {
  config: {
    id: 'ignored',
    run: RUN,
    secret: SECRET,
    controller: `127.0.0.1:${port}`,
    allow: ['198.51.100.4:8000', "it's.example.org"],
    tokenSecret: 'a "quoted" \\ secret',
  },
  prefix: 'd',
  first: 5,
  sha256: program.sha256,
  ends: Date.now() + 7_200_000,
  nodeVersion: '22',
  nodeUrl: `${here}/dist`,
  memory: 2 * 2 ** 30,
}
const { text, config } = await cloudConfigOf(boot)

/**
 * A clean machine: the files that cloud-init writes, and a PATH with what Ubuntu has, but no Node.js. What would
 * change this machine only writes down that it was called.
 *
 * @param {string} name
 */
async function machine(name) {
  const root = join(folder, name)
  await writeFiles(root, config)
  const bin = join(root, 'usr/bin')
  await mkdir(bin, { recursive: true })
  const tools = 'sh date sed grep curl tar gzip sha256sum uname mkdir ln rm cat sleep'.split(' ')
  for (const tool of tools)
    await symlink((await run('sh', ['-c', `command -v ${tool}`])).stdout.trim(), join(bin, tool))
  const log = join(root, 'called')
  for (const tool of ['shutdown', 'systemctl', 'sysctl']) {
    await writeFile(join(bin, tool), `#!/bin/sh\necho "${tool} $*" >>${log}\n`, { mode: 0o755 })
  }
  const env = { PATH: bin, HALLEY_ROOT: root, HALLEY_METADATA: here, HALLEY_PAUSE: '0' }
  return {
    root,
    bin,
    /** @returns {Promise<{code: number, output: string, called: string[]}>} */
    async setUp() {
      const child = spawn(join(bin, 'sh'), [join(root, config.runcmd[0][1])], { env, cwd: '/' })
      let output = ''
      for (const stream of [child.stdout, child.stderr]) stream.on('data', data => (output += data))
      const [code] = await once(child, 'close')
      return { code, output, called: (await readFile(log, 'utf8')).trim().split('\n') }
    },
  }
}

t.test('cloud-init accepts the user data', { skip: withoutProgram('cloud-init') }, async t => {
  t.match(text, /^#cloud-config\n/)
  const file = join(folder, 'cloud-config.yaml')
  await writeFile(file, text)
  const { stdout } = await run('cloud-init', ['schema', '--config-file', file])
  t.match(stdout, /^Valid (?:cloud-config|schema)/)
})

t.test('the time limit is set first, at every boot, and by systemd', async t => {
  const [first] = Object.keys(config)
  t.equal(first, 'bootcmd')
  const ends = Math.ceil(boot.ends / 1000)
  const [shell, option, loop] = config.bootcmd[0]
  t.strictSame([shell, option], ['sh', '-c'])
  t.ok(loop.includes(`-lt ${ends} ]`))
  // It runs with an expired time limit, and with a poweroff command that records its call.
  const log = join(folder, 'off')
  await mkdir(join(folder, 'off-bin'))
  for (const tool of ['systemctl', 'poweroff'])
    await writeFile(join(folder, 'off-bin', tool), `#!/bin/sh\necho "${tool} $*" >>${log}; kill -9 $PPID\n`, {
      mode: 0o755,
    })
  const env = { PATH: `${join(folder, 'off-bin')}:${process.env.PATH}` }
  const script = loop.replace(`-lt ${ends}`, '-lt 1').replace(/ >\/dev\/null 2>&1 &$/, '')
  await run('sh', ['-c', script], { env }).catch(() => {})
  t.equal(await readFile(log, 'utf8'), 'systemctl poweroff\n')
})

t.test('systemd accepts the service', { skip: withoutProgram('systemd-analyze', 'systemd') }, async t => {
  const unit = join(folder, 'halley-drone.service')
  // The program is not on this machine.
  await writeFile(
    unit,
    fileOf(config, 'halley-drone.service').replace('/opt/halley/bin/node', process.execPath),
  )
  const { stderr } = await run('systemd-analyze', ['verify', '--man=no', unit], {
    env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` },
  }).catch(error => error)
  t.notMatch(stderr, /halley.*(?:Unknown|Invalid|Failed to parse|bad)/i)
})

t.test('the script sets up a clean machine, and its service calls the controller', async t => {
  // An archive like that of the distribution, with the Node.js of this machine.
  const tree = join(folder, `node-${VERSION}-linux-${ARCH}`)
  await mkdir(join(tree, 'bin'), { recursive: true })
  await writeFile(join(tree, 'bin/node'), `#!/bin/sh\nexec ${process.execPath} "$@"\n`, { mode: 0o755 })
  await writeFile(join(tree, 'README.md'), 'not needed')
  await run('tar', ['-czf', archive, '-C', folder, `node-${VERSION}-linux-${ARCH}`])

  const { root, setUp } = await machine('clean')
  const { code, output, called } = await setUp()
  t.equal(code, 0, output)
  t.match(output, /installing Node\.js: attempt 1 failed/, 'a damaged archive is not used')
  t.equal(requests.filter(path => path.endsWith('.tar.gz')).length, 2)
  t.match(called[0], /^shutdown -P \+1(?:19|20)$/, 'the time limit comes first')
  t.match(called.slice(1), [
    /^sysctl -q -e -p .*\/etc\/sysctl\.d\/90-halley\.conf$/,
    /^systemctl stop apt-daily/,
    'systemctl daemon-reload',
    'systemctl enable --now halley-drone.service',
  ])
  t.match(
    await readFile(join(root, 'etc/sysctl.d/90-halley.conf'), 'utf8'),
    /ip_local_port_range = 1024 65535/,
  )
  const written = join(root, 'etc/halley/drone.json')
  t.equal((await stat(written)).mode & 0o777, 0o600)
  t.strictSame(
    JSON.parse(await readFile(written, 'utf8')),
    { ...boot.config, id: 'd8' },
    'the fourth machine of the call',
  )

  // As systemd would: the credential in a folder of the service's own, and the unit's command line.
  const unit = fileOf(config, 'halley-drone.service')
  for (const line of [
    'Restart=always',
    'LimitNOFILE=1048576',
    'User=halley',
    'StateDirectory=halley',
    'LoadCredential=drone.json:/etc/halley/drone.json',
  ])
    t.ok(unit.split('\n').includes(line), line)
  const credentials = join(root, 'run/credentials')
  await mkdir(credentials, { recursive: true })
  await copyFile(written, join(credentials, 'drone.json'))
  const state = join(root, 'var/lib/halley')
  const [node, ...args] = commandOf(root, config, { credentials, state })
  const drone = spawn(node, args, {
    env: { PATH: '/usr/bin:/bin' },
    cwd: '/',
  })
  let printed = ''
  for (const stream of [drone.stdout, drone.stderr]) stream.on('data', data => (printed += data))
  const ended = once(drone, 'exit')
  t.teardown(() => drone.kill('SIGKILL'))
  const first = await Promise.race([hello, ended.then(([code]) => `it ended with ${code}: ${printed}`)])
  t.match(first, { type: 'hello', id: 'd8', run: 'run-7k2m' })
  drone.kill('SIGTERM')
  await ended
})

t.test('a machine with a recent Node.js keeps it', async t => {
  const { root, bin, setUp } = await machine('ready')
  await symlink(process.execPath, join(bin, 'node'))
  const before = requests.length
  const { code, output } = await setUp()
  t.equal(code, 0, output)
  t.notOk(requests.slice(before).some(path => path.includes('/dist/')))
  t.equal((await run(join(root, 'opt/halley/bin/node'), ['--version'])).stdout.trim(), process.version)
})

t.test('a machine whose setup fails logs the reason and powers off', async t => {
  const { setUp } = await machine('failing')
  damaged = 1000
  const { code, output, called } = await setUp()
  t.equal(code, 1)
  t.match(output, /installing Node\.js failed, powers off in 10 minutes/)
  t.equal(called.at(-1), 'shutdown -P +10')
  t.notOk(called.some(call => call.includes('halley-drone.service')))
})
