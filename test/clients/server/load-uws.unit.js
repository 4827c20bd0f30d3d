import t from 'tap'
import { installCommand, loadUws, whyNot } from '../../../src/clients/server/load-uws.js'

const LOADER =
  'This version of uWS.js supports only Node.js versions 16, 18, 20, 21, 22, 24 and 25 on (glibc) Linux.'
const SO = '/app/node_modules/uWebSockets.js/uws_linux_x64_127.node'

/** As the package throws it, on a system with another glibc or Node.js. @param {string} cause */
const fromLoader = cause => new Error(`${LOADER}\n\n${cause}`)
const noBinary = fromLoader(
  "Error: Cannot find module './uws_linux_x64_147.node'\nRequire stack:\n- /home/me/app/node_modules/uWebSockets.js/uws.js",
)

t.test('the reason and the cure are a sentence', async t => {
  const old = fromLoader(
    `Error: /lib/x86_64-linux-gnu/libc.so.6: version \`GLIBC_2.38' not found (required by ${SO})`,
  )
  t.equal(whyNot(old, { version: 'v22.1.0' }), 'uWebSockets.js needs glibc 2.38: Debian 13 or Node.js 20')
  t.equal(whyNot(old, { version: 'v20.1.0' }), 'uWebSockets.js needs glibc 2.38: a newer distribution')
  t.equal(
    whyNot(noBinary, { version: 'v26.1.0', isDependency: false }),
    'uWebSockets.js has no binary for Node.js 26: npm install ' +
      'uWebSockets.js@https://github.com/uNetworking/uWebSockets.js/archive/refs/tags/v20.67.0.tar.gz',
  )
  t.equal(
    whyNot(noBinary, { version: 'v26.1.0', isDependency: true }),
    `uWebSockets.js has no binary for Node.js 26: ${installCommand(true)}`,
  )
  t.match(installCommand(true), /^npm pkg set "overrides\[uWebSockets\.js\]=https:.*" && npm install$/)
  t.equal(
    whyNot(noBinary, { version: 'v30.0.0', platform: 'linux s390x' }),
    'uWebSockets.js has no binary for Node.js 30 on linux s390x: use Node.js 24 on Debian 13',
  )
  t.equal(
    whyNot(
      Object.assign(new Error("Cannot find package 'uWebSockets.js'"), { code: 'ERR_MODULE_NOT_FOUND' }),
    ),
    'uWebSockets.js is not installed: install without --omit=optional',
  )
  t.match(
    whyNot(fromLoader('Error: Error loading shared library ld-linux-x86-64.so.2: No such file or directory')),
    /^uWebSockets\.js needs glibc, which this system does not have/,
  )
})

t.test('any other reason is the last line of the error', async t => {
  t.equal(whyNot(new Error('a long story\n\n- no luck\n')), 'uWebSockets.js does not load: no luck')
  for (const thrown of [new Error(''), undefined, null, '', 0])
    t.match(whyNot(thrown), /^uWebSockets\.js does not load: \S/)
})

t.test('loading gives the library, or the reason', async t => {
  const uws = /** @type {any} */ ({ App: () => {} })
  t.same(await loadUws(async () => ({ default: uws })), { uws, why: '' })
  const load = async () => {
    throw noBinary
  }
  const { uws: none, why } = await loadUws(load)
  t.equal(none, null)
  t.match(why, /^uWebSockets\.js has no binary for Node\.js \d+/)
})
