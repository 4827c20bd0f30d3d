// The programs of docs/backends.md, each in its language: their tokens open a connection, and what they publish
// arrives.

import { spawn, spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import ts from 'typescript'
import { fetch } from '../kit/fetch.js'
import { startGateway } from '../kit/gateway.js'
import { unless, withoutProgram } from '../kit/needs.js'
import { freePort } from '../kit/ports.js'
import { RawClient } from '../kit/raw-client.js'
import { until } from '../kit/wait.js'
import { blockWith } from './blocks.js'
import { workplace } from './workplace.js'

const PAGE = 'docs/backends.md'
const SECRET = 'token-secret-of-the-tests-of-the-guides'
const KEY = 'api-key-of-the-tests-of-the-guides-0000'
/** Debian's: its modules are not those of another Python on the PATH. */
const PYTHON = '/usr/bin/python3'

const gateway = await startGateway(t, {
  workers: 1,
  client: { token: { hmac_secret_key: SECRET } },
  http_api: { key: KEY },
  channel: { without_namespace: { allow_subscribe_for_client: true } },
})
const env = { HALLEY_URL: gateway.url, HALLEY_API_KEY: KEY, HALLEY_TOKEN_SECRET: SECRET }

/**
 * The token opens a connection of that user until its time, and the message arrives there.
 * @param {any} t @param {string} token @param {string} user @param {() => Promise<any>} publish @param {object} data
 */
async function check(t, token, user, publish, data) {
  const claims = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString())
  t.match(claims, { sub: user, exp: Number })
  t.ok(claims.exp > Date.now() / 1000 && claims.exp < Date.now() / 1000 + 700, 'ten minutes')
  const client = await RawClient.connected(gateway.ws, { token })
  t.teardown(() => client.socket.terminate())
  await client.subscribe('news')
  await publish()
  const { pub } = await client.push('pub')
  t.same(pub.data, data)
}

/** Waits until a program listens. @param {import('node:child_process').ChildProcess} child @param {string} url */
async function listening(child, url) {
  const over = () => child.exitCode !== null
  const answer = await until(() => (over() ? 'ended' : fetch(url).then(answer => answer.text())), url)
  if (over()) throw new Error(`the program ended with ${child.exitCode}`)
  return answer
}

function start(t, program, args, options) {
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'], ...options })
  t.teardown(() => child.kill('SIGKILL'))
  return child
}

/** Runs a program to its end. @param {any} t @param {string} program @param {string[]} args @param {object} options */
function run(t, program, args, options) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', ...options })
  t.equal(status, 0, `${program}: ${stderr}`)
  return stdout.trim()
}

t.test('Express', async t => {
  const port = await freePort()
  const folder = await workplace(t, ['express', 'jsonwebtoken'], {
    'server.js': blockWith(PAGE, 'js', 'express()'),
  })
  const child = start(t, process.execPath, ['server.js'], {
    cwd: folder,
    env: { ...process.env, ...env, PORT: String(port) },
  })
  const url = `http://127.0.0.1:${port}`
  await listening(child, url)
  const headers = { 'x-user': '42', 'content-type': 'application/json' }
  const { token } = await (await fetch(`${url}/halley/token`, { headers })).json()
  const publish = async () => {
    const answer = await fetch(`${url}/messages`, {
      method: 'POST',
      headers,
      body: '{"text":"from Express"}',
    })
    t.equal(answer.status, 200)
  }
  await check(t, token, '42', publish, { user: '42', text: 'from Express' })
})

t.test('Next.js: its route handlers', async t => {
  const names = { 'token.js': 'SignJWT', 'messages.js': 'export async function POST' }
  const files = Object.fromEntries(
    Object.entries(names).map(([name, part]) => [
      name,
      ts.transpile(blockWith(PAGE, 'ts', part), {
        target: ts.ScriptTarget.ESNext,
        module: ts.ModuleKind.ESNext,
      }),
    ]),
  )
  const folder = await workplace(t, ['jose'], files)
  Object.assign(process.env, env)
  const { GET } = await import(join(folder, 'token.js'))
  const { POST } = await import(join(folder, 'messages.js'))
  const { token } = await (
    await GET(new Request('http://localhost/', { headers: { 'x-user': '43' } }))
  ).json()
  const publish = async () => {
    const request = new Request('http://localhost/', { method: 'POST', body: '{"text":"from Next.js"}' })
    t.equal((await POST(request)).status, 200)
  }
  await check(t, token, '43', publish, { text: 'from Next.js' })
})

const django = spawnSync(PYTHON, ['-c', 'import django, jwt']).status === 0

t.test(
  'Django: its views',
  { skip: unless(django, 'no Django and PyJWT (Debian: apt-get install python3-django python3-jwt)') },
  async t => {
    const app = join(await workplace(t), 'chat')
    await mkdir(app)
    await writeFile(join(app, '__init__.py'), '')
    await writeFile(join(app, 'halley.py'), blockWith(PAGE, 'python', 'import jwt'))
    await writeFile(join(app, 'views.py'), blockWith(PAGE, 'python', 'login_required'))
    const program = `
import json, sys
import django
from django.conf import settings
settings.configure(SECRET_KEY="x", ALLOWED_HOSTS=["*"], USE_TZ=True)
django.setup()
from django.test import RequestFactory
from chat import views

class User:
    pk = 44
    is_authenticated = True

def call(view, request):
    request.user = User()
    return view(request).content.decode()

requests = RequestFactory()
print(json.loads(call(views.halley_token, requests.get("/")))["token"], flush=True)
sys.stdin.readline()
print(call(views.messages, requests.post("/", {"text": "from Django"}, content_type="application/json")), flush=True)
`
    const child = start(t, PYTHON, ['-c', program], {
      cwd: join(app, '..'),
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const lines = createInterface({ input: /** @type {any} */ (child.stdout) })[Symbol.asyncIterator]()
    const publish = async () => {
      child.stdin?.end('now\n')
      t.same(JSON.parse((await lines.next()).value), {})
    }
    await check(t, (await lines.next()).value, '44', publish, { user: 44, text: 'from Django' })
  },
)

t.test('Laravel: its service', { skip: withoutProgram('php', 'php-cli') }, async t => {
  const folder = await workplace(t, [], { 'Halley.php': blockWith(PAGE, 'php', 'class Halley') })
  const made = `require 'Halley.php'; $halley = new App\\Services\\Halley(...array_map('getenv', ['HALLEY_URL', 'HALLEY_API_KEY', 'HALLEY_TOKEN_SECRET']));`
  const options = { cwd: folder, env: { ...process.env, ...env } }
  const token = run(t, 'php', ['-r', `${made} echo $halley->token('45');`], options)
  const publish = async () => {
    const call = `$halley->call('publish', ['channel' => 'news', 'data' => ['text' => 'from PHP']])`
    t.same(JSON.parse(run(t, 'php', ['-r', `${made} echo json_encode(${call});`], options)), [])
  }
  await check(t, token, '45', publish, { text: 'from PHP' })
  const refused = spawnSync(
    'php',
    ['-r', `${made} $halley->call('publish', ['channel' => 'no:1', 'data' => 1]);`],
    {
      ...options,
      encoding: 'utf8',
    },
  )
  t.match(refused.stdout + refused.stderr, /publish: unknown channel/)
})

/** Where Debian installs sources of Go packages. */
const GO_SOURCES = '/usr/share/gocode'
const go =
  withoutProgram('go', 'golang-go') ||
  unless(
    spawnSync('test', ['-d', `${GO_SOURCES}/src/github.com/golang-jwt/jwt`]).status === 0,
    'no golang-jwt (Debian: apt-get install golang-github-golang-jwt-jwt-dev)',
  )

t.test('Go', { skip: go }, async t => {
  // Debian has the package without a version in its path.
  const program = blockWith(PAGE, 'go', 'package main').replace('golang-jwt/jwt/v5', 'golang-jwt/jwt')
  const folder = await workplace(t, [], { 'main.go': program })
  run(t, 'go', ['build', '-o', 'backend', 'main.go'], {
    cwd: folder,
    env: { ...process.env, GO111MODULE: 'off', GOPATH: GO_SOURCES, GOFLAGS: '' },
  })
  const port = await freePort()
  const child = start(t, join(folder, 'backend'), [], { env: { ...process.env, ...env, PORT: String(port) } })
  const url = `http://127.0.0.1:${port}`
  await listening(child, url)
  const { token } = await (await fetch(`${url}/halley/token`, { headers: { 'x-user': '46' } })).json()
  const publish = async () =>
    t.equal((await fetch(`${url}/messages?text=from+Go`, { method: 'POST' })).status, 200)
  await check(t, token, '46', publish, { text: 'from Go' })
})
